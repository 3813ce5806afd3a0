import { defineExtension, Harness, HarnessError } from 'thinharness'

const KEY = /sk-[A-Za-z0-9]{8,}/g

export const keepKeysOut = defineExtension({
  name: 'keep-keys-out',
  input(content, { kind }) {
    if (typeof content === 'string') return content.replaceAll(KEY, '[key]')
    if (content.some((part) => part.type !== 'text')) return { reject: `No files in a ${kind}, please.` }
    return content.map((part) => (part.type === 'text' ? { ...part, text: part.text.replaceAll(KEY, '[key]') } : part))
  },
})

await using harness = new Harness({ model: 'anthropic:claude-sonnet-5', use: [keepKeysOut] })
try {
  console.log((await harness.run('Why does sk-Abcdefgh1 not work?')).text)
} catch (error) {
  if (error instanceof HarnessError && error.code === 'guard_blocked') console.log(error.message)
  else throw error
}
