import { withDeps } from 'thinharness'
import { z } from 'zod'

/** What the tools of this program work with. */
export interface Shop {
  readonly orders: ReadonlyMap<string, { readonly owner: string; readonly status: string }>
  readonly user: string
}

export const { defineTool, defineExtension, Harness } = withDeps<Shop>()

export const orderStatus = defineTool({
  name: 'order_status',
  description: 'The status of one order of this customer.',
  parameters: z.object({ id: z.string() }),
  annotations: { readOnly: true },
  handler: ({ id }, { deps: { orders, user } }) => {
    const order = orders.get(id)
    return order?.owner === user ? order.status : `${user} has no order ${id}.`
  },
})
