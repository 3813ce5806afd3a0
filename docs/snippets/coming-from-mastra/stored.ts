import { fromMessages } from 'thinharness'
import type { Harness } from 'thinharness'

/** Continues a conversation that Mastra has stored: `convertMessages(messages).to('AIV5.Model')` of its messages. */
export async function continued(harness: Harness, messages: readonly { readonly role: string }[], prompt: string) {
  const history = fromMessages(messages.filter(({ role }) => role !== 'system'))
  return harness.run(prompt, { history })
}
