import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Payment } from './bank.js'

/** A line of the books. */
export interface Booking extends Payment {
  readonly key: string | null
  readonly receipt: string
}

/** Of a payment: its request has arrived, the money has moved, the answer was sent. */
export type BankStep = 'asked' | 'booked' | 'answered'

export interface OpenBank {
  readonly url: string
  books(): readonly Booking[]
  close(): Promise<void>
}

/** A bank over HTTP, in another process than the one that pays. Its books are a file, and it is never killed. */
export async function openBank(path: string, onStep: (step: BankStep, invoice: string) => void): Promise<OpenBank> {
  const books = existsSync(path) ? bookingsIn(readFileSync(path, 'utf8')) : []
  const find = (key: string | null): Booking | undefined =>
    key === null ? undefined : books.find((each) => each.key === key)

  /** Books a payment, unless its key is known. Banks take their time. */
  async function pay(request: IncomingMessage): Promise<Booking> {
    const payment = (await json(request)) as Payment
    const { 'idempotency-key': given } = request.headers
    const key = typeof given === 'string' ? given : null
    onStep('asked', payment.invoice)
    await sleep(10)
    const known = find(key)
    if (known !== undefined) return known
    const booking = { ...payment, key, receipt: `R-${String(books.length + 1).padStart(4, '0')}` }
    books.push(booking)
    appendFileSync(path, `${JSON.stringify(booking)}\n`)
    onStep('booked', payment.invoice)
    await sleep(10)
    return booking
  }

  const server = createServer((request, response) => {
    const [, asked] = /^\/payments\/(.+)$/.exec(request.url ?? '') ?? []
    const answer = asked === undefined ? pay(request) : Promise.resolve(find(decodeURIComponent(asked)))
    answer.then(
      (booking) => {
        response.writeHead(booking === undefined ? 404 : 200).end(JSON.stringify(booking ?? {}))
        if (asked === undefined && booking !== undefined) onStep('answered', booking.invoice)
      },
      () => response.writeHead(400).end(),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    books: () => books,
    close: () => new Promise((resolve) => server.close(() => resolve()).closeAllConnections()),
  }
}

function bookingsIn(text: string): Booking[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Booking)
}
