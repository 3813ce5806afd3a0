import type { ProviderRequest, Reply } from 'thinharness/testing'

/** What is said where no model is named. */
export function answer({ heard }: ProviderRequest): Reply {
  if (heard.kind !== 'tool_outputs') {
    return {
      calls: [
        { name: 'refund', arguments: { orderId: '7', cents: 500 } },
        { name: 'refund', arguments: { orderId: '8', cents: 6450 } },
      ],
    }
  }
  return { text: heard.outputs.every(({ ok }) => ok) ? 'Both are paid back.' : 'One of the two has to wait.' }
}
