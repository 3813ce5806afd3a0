import { ModelRetry, withDeps } from 'thinharness'
import type { PendingItem } from 'thinharness'
import { z } from 'zod'
import type { Shop } from './shop.js'

/** What the tools need. The customer is the owner of the conversation: the model does not choose whose orders it sees. */
interface Desk {
  readonly shop: Shop
  readonly customer: string
}

const { defineTool, Harness } = withDeps<Desk>()

const lookUpOrder = defineTool({
  name: 'look_up_order',
  description: 'Look up an order of the customer, and what of it has been refunded.',
  parameters: z.object({ orderId: z.string() }),
  annotations: { readOnly: true },
  handler({ orderId }, { deps: { shop, customer } }) {
    const order = shop.order(orderId, customer)
    if (order === undefined) return `The customer has no order ${orderId}.`
    return { items: order.items, cents: order.cents, refundedCents: shop.refunded(orderId) }
  },
})

const REFUND = z.object({ orderId: z.string(), cents: z.number().int().positive(), reason: z.string() })

const refund = defineTool({
  name: 'refund',
  description: 'Refund an order of the customer, in full or in part.',
  parameters: REFUND,
  requiresApproval: true,
  // One refund after the other: each sees what those before it left.
  sequential: true,
  // After a crash in the middle, the call is made again with the same key.
  annotations: { idempotent: true },
  async handler({ orderId, cents }, { deps: { shop, customer }, idempotencyKey: key }) {
    const order = shop.order(orderId, customer)
    if (order === undefined) throw new ModelRetry(`The customer has no order ${orderId}.`)
    if (!shop.isMade(key) && cents > order.cents - shop.refunded(orderId))
      throw new ModelRetry(`Only ${order.cents - shop.refunded(orderId)} cents of order ${orderId} can be refunded.`)
    await shop.refund({ orderId, cents, key })
    return `Refunded ${(cents / 100).toFixed(2)} euros of order ${orderId}.`
  },
})

/** The agent that answers customers. */
export function supportAgent(shop: Shop): InstanceType<typeof Harness> {
  return new Harness({
    builtinTools: [],
    tools: [lookUpOrder, refund],
    instructions: `You are the support desk of a small tea shop. Be brief and friendly. Look an order up before you speak
of it. Call refund when a customer is due one: the staff decide, so do not ask the customer to confirm. If they refuse, give the
customer their reason.`,
    limits: { modelRequests: 20, timeMs: 120_000 },
    deps: ({ metadata: { resourceId } }) => ({ shop, customer: typeof resourceId === 'string' ? resourceId : '' }),
  })
}

const SMALL_CENTS = 1000

/**
 * Approves refunds without a person, as long as all of an order's refunds together are small. The rest waits for the staff, and so
 * does a refund that comes with another one: each of them would look small.
 */
export function smallRefunds(shop: Shop): (item: PendingItem) => { readonly approved: true } | null {
  return ({ kind, toolName, arguments: text, otherCalls = [] }) => {
    if (kind !== 'approval' || toolName !== 'refund') return null
    if (otherCalls.some((other) => other.toolName === 'refund')) return null
    const { orderId, cents } = REFUND.parse(JSON.parse(text))
    return shop.refunded(orderId) + cents <= SMALL_CENTS ? { approved: true } : null
  }
}
