export interface Payment {
  readonly invoice: string
  readonly to: string
  readonly cents: number
}

const ATTEMPTS = 3

/** The bank as its customers see it. Replace it with the client of your payment provider. */
export class Bank {
  readonly #url: string

  constructor(url: string) {
    this.#url = url
  }

  /** Pays, and gives the receipt. With a key, a payment that is requested again is not made again. */
  async pay(payment: Payment, key: string | null): Promise<string> {
    for (let attempt = 1; ; attempt++) {
      try {
        const response = await fetch(`${this.#url}/payments`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...(key !== null && { 'idempotency-key': key }) },
          body: JSON.stringify(payment),
        })
        return await receiptIn(response)
      } catch (error) {
        // An answer that was lost is requested again, but only by its key.
        if (key === null || attempt === ATTEMPTS) throw error
      }
    }
  }

  /** The receipt of a payment by its key; null if none was made. */
  async find(key: string): Promise<string | null> {
    const response = await fetch(`${this.#url}/payments/${encodeURIComponent(key)}`)
    return response.status === 404 ? null : receiptIn(response)
  }
}

async function receiptIn(response: Response): Promise<string> {
  if (!response.ok) throw new Error(`The bank answered with ${response.status}.`)
  return ((await response.json()) as { readonly receipt: string }).receipt
}
