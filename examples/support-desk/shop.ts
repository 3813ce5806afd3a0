import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

export interface Order {
  readonly id: string
  readonly customer: string
  readonly items: string
  readonly cents: number
}

export interface Refund {
  readonly orderId: string
  readonly cents: number
  /** Names the refund: the same key is the same refund. */
  readonly key: string
}

const ORDERS: readonly Order[] = [
  { id: '1042', customer: 'ada', items: '6 cups, blue', cents: 6450 },
  { id: '1043', customer: 'ada', items: '1 tea strainer', cents: 790 },
  { id: '2001', customer: 'ben', items: '1 teapot', cents: 4200 },
]

/** The orders of a shop, and its payment provider. In place of a database and an API, the refunds are lines of a file. */
export class Shop {
  readonly #ledger: string

  constructor(ledger: string) {
    this.#ledger = ledger
  }

  /** An order of this customer; undefined if it is another's, or does not exist. */
  order(id: string, customer: string): Order | undefined {
    return ORDERS.find((order) => order.id === id && order.customer === customer)
  }

  /** What has been refunded of an order, in cents. */
  refunded(orderId: string): number {
    return this.#refunds()
      .filter((refund) => refund.orderId === orderId)
      .reduce((sum, { cents }) => sum + cents, 0)
  }

  /** True if the refund of this key has been made. */
  isMade(key: string): boolean {
    return this.#refunds().some((refund) => refund.key === key)
  }

  /** Pays money back. Like any payment provider, it takes a key: a refund that is requested twice is made once. */
  async refund(refund: Refund): Promise<void> {
    if (!this.isMade(refund.key)) appendFileSync(this.#ledger, `${JSON.stringify(refund)}\n`)
    // The money has moved, and the answer of the provider is on its way.
    await sleep(200)
  }

  #refunds(): readonly Refund[] {
    if (!existsSync(this.#ledger)) return []
    const lines = readFileSync(this.#ledger, 'utf8').split('\n')
    return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Refund)
  }
}
