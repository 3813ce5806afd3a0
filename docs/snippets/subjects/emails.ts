import { defineExtension } from 'thinharness'

const EMAIL = /[\w.+-]+@[\w-]+(?:\.[\w-]+)+/g
const masked = (text: string) => text.replaceAll(EMAIL, '[email]')

/** No e-mail address in a message of a person or in the result of a tool reaches the model or the log. */
export const withoutEmails = defineExtension({
  name: 'without-emails',
  input: (content) =>
    typeof content === 'string'
      ? masked(content)
      : content.map((part) => (part.type === 'text' ? { ...part, text: masked(part.text) } : part)),
  hooks: [{ event: 'after_tool_call', agents: ['*'], handler: ({ output }) => ({ output: masked(output) }) }],
})
