import type { Order } from './orders.js'

/** The content of a report on the storm. */
export interface StormRefunds {
  readonly orders: number
  readonly totalCents: number
  /** The five largest refunds, the largest first; the lower order id first among equals. */
  readonly largest: readonly Refund[]
}

export interface Refund {
  readonly id: string
  readonly refundCents: number
}

/** The numbers of a refund policy. */
export interface Policy {
  /** Orders delivered later than this many days are refunded. */
  readonly daysLate: number
  readonly percent: number
  /** Maximum for one order. */
  readonly mostCents: number
}

const IN_FORCE: Policy = { daysLate: 5, percent: 20, mostCents: 1500 }

/** Answers the quickstart's question without a model; reports are checked against it. */
export function stormRefunds(orders: Iterable<Order>): StormRefunds {
  const refunds: Refund[] = []
  for (const order of orders) {
    if (isRefunded(order)) refunds.push({ id: order.id, refundCents: refundOf(order.total_cents, IN_FORCE) })
  }
  return summed(refunds)
}

/** Rounded down to the whole cent. */
export function refundOf(totalCents: number, { percent, mostCents }: Policy): number {
  return Math.min(mostCents, Math.floor((totalCents * percent) / 100))
}

export function summed(refunds: readonly Refund[]): StormRefunds {
  const largest = [...refunds].sort((a, b) => b.refundCents - a.refundCents || (a.id < b.id ? -1 : 1)).slice(0, 5)
  return { orders: refunds.length, totalCents: refunds.reduce((sum, each) => sum + each.refundCents, 0), largest }
}

function isRefunded({ carrier, placed_on, days_late, status }: Order): boolean {
  const inStorm = placed_on >= '2026-10-12' && placed_on <= '2026-10-16'
  return carrier === 'Borealis' && inStorm && days_late > IN_FORCE.daysLate && status === 'delivered'
}
