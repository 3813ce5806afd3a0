import type { Order } from './orders.js'

/** What a report on the storm has to say. */
export interface StormRefunds {
  readonly orders: number
  readonly totalCents: number
  /** The five largest refunds, the largest first; the earlier order first among equals. */
  readonly largest: readonly { readonly id: string; readonly refundCents: number }[]
}

/** The policy of `notes/policies/refunds.md`, applied to the storm of `notes/carriers/borealis.md`: the plain answer. */
export function stormRefunds(orders: Iterable<Order>): StormRefunds {
  const refunds: { id: string; refundCents: number }[] = []
  for (const order of orders) {
    if (isRefunded(order)) refunds.push({ id: order.id, refundCents: refundOf(order.total_cents) })
  }
  return summed(refunds)
}

/** 20 percent, rounded down to the cent, at most 15 euros. */
export function refundOf(totalCents: number): number {
  return Math.min(1500, Math.floor((totalCents * 20) / 100))
}

export function summed(refunds: readonly { readonly id: string; readonly refundCents: number }[]): StormRefunds {
  const largest = [...refunds].sort((a, b) => b.refundCents - a.refundCents || (a.id < b.id ? -1 : 1)).slice(0, 5)
  return { orders: refunds.length, totalCents: refunds.reduce((sum, each) => sum + each.refundCents, 0), largest }
}

function isRefunded({ carrier, placed_on, days_late, status }: Order): boolean {
  const inStorm = placed_on >= '2026-10-12' && placed_on <= '2026-10-16'
  return carrier === 'Borealis' && inStorm && days_late > 5 && status === 'delivered'
}
