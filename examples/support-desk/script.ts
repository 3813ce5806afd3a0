import type { ProviderFault, ProviderRequest, Reply } from 'thinharness/testing'

const RETURNS = `Returns are easy. Pack the tea things well, best in the box in which they came. Put the delivery note on top, and write on it
what is wrong. Bring the parcel to any post office within thirty days: we pay for it. When it has arrived, we look at everything,
which takes two days. Then you have your money within a week, by the way in which you paid. Broken things need no return: a
sentence about them is enough, and the staff decide the same day.`

/** The scripted replies for use without a model: they follow words of the last message, and the calls after it. */
export function answer({ messages }: ProviderRequest): Reply | ProviderFault {
  const asked = messages.findLastIndex(({ role }) => role === 'user')
  const { content } = messages[asked] as { readonly content: unknown }
  const said = typeof content === 'string' ? content : JSON.stringify(content)
  const results = messages.slice(asked + 1).flatMap((each) => (each.role === 'tool' ? [String(each.content)] : []))
  const [, orderId] = /\border (\d{4})\b/i.exec(said) ?? []
  if (/\breturns?\b/i.test(said)) return { fault: 'drip', reply: { text: RETURNS }, bytes: 120, everyMs: 15 }
  if (orderId === undefined) return { text: 'Tell me the number of your order, please. It has four digits.' }
  const [order, refunded] = results
  if (order === undefined) return call('look_up_order', { orderId })
  if (!/refund/i.test(said) || order.startsWith('The customer has no'))
    return { text: `About order ${orderId}: ${order}` }
  if (refunded === undefined) {
    const { cents } = JSON.parse(order) as { readonly cents: number }
    const [, part] = /(\d+) cents/.exec(said) ?? []
    return call('refund', { orderId, cents: Number(part ?? cents), reason: said.slice(0, 120) })
  }
  return { text: `The staff have decided. ${refunded}` }
}

function call(name: string, args: Readonly<Record<string, string | number>>): Reply {
  return { text: 'One moment.', calls: [{ name, arguments: args }] }
}
