import type { ProviderRequest, Reply } from 'thinharness/testing'

/** The scripted replies for use without a model. */
export function answer({ heard }: ProviderRequest): Reply {
  if (heard.kind !== 'tool_outputs') {
    return {
      calls: [
        { name: 'refund', arguments: { orderId: '7', cents: 500 } },
        { name: 'refund', arguments: { orderId: '8', cents: 6450 } },
      ],
    }
  }
  return { text: heard.outputs.every(({ ok }) => ok) ? 'Both are refunded.' : 'One of the two has to wait.' }
}
