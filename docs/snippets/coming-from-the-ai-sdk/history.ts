import { fromMessages } from 'thinharness'
import type { Harness } from 'thinharness'

/** Continues a conversation whose messages the AI SDK has stored. */
export async function continued(harness: Harness, messages: readonly { readonly role: string }[], prompt: string) {
  const history = fromMessages(messages.filter(({ role }) => role !== 'system'))
  return harness.run(prompt, { history })
}
