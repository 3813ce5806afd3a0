import type { ProviderRequest, Reply } from 'thinharness/testing'

const PARTS = 3

/** The scripted replies for use without a model: an order has three parts, which are shipped one after the other. */
export function answer({ turn, messages }: ProviderRequest): Reply {
  const [, order = ''] = /Ship order (\w+)\./.exec(JSON.stringify(messages)) ?? []
  if (turn < PARTS) return { calls: [{ name: 'ship', arguments: { order, part: turn + 1 } }] }
  return { text: `Order ${order} is shipped.` }
}
