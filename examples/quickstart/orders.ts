import { createWriteStream, existsSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { finished } from 'node:stream/promises'

/** One line of `orders.jsonl`. */
export interface Order {
  readonly id: string
  /** Calendar days as `YYYY-MM-DD`. */
  readonly placed_on: string
  readonly customer: { readonly id: string; readonly country: string }
  readonly carrier: string
  readonly items: readonly { readonly sku: string; readonly quantity: number; readonly unit_cents: number }[]
  readonly total_cents: number
  readonly promised_on: string
  readonly delivered_on: string | null
  /** Days after the promised day; 0 if on time. */
  readonly days_late: number
  readonly status: 'delivered' | 'cancelled'
}

const COUNT = 24_000
const FIRST_DAY = Date.UTC(2026, 8, 1)
const DAYS = 75
const DAY_MS = 86_400_000
const STORM = { from: '2026-10-12', to: '2026-10-16' }

const CARRIERS = [
  { name: 'Borealis', countries: ['SE', 'NO', 'FI', 'DK', 'EE', 'LV', 'LT', 'DE'] },
  { name: 'Meridian', countries: ['FR', 'ES', 'PT', 'IT', 'NL', 'BE', 'AT', 'CH'] },
  { name: 'Kestrel', countries: ['GB', 'IE'] },
] as const

const ARTICLES = [
  { sku: 'ASSAM-250', unit_cents: 1290 },
  { sku: 'DARJEELING-100', unit_cents: 1675 },
  { sku: 'SENCHA-150', unit_cents: 1449 },
  { sku: 'EARL-GREY-200', unit_cents: 985 },
  { sku: 'ROOIBOS-200', unit_cents: 799 },
  { sku: 'CAST-IRON-POT', unit_cents: 6450 },
  { sku: 'SAMPLER-BOX', unit_cents: 3299 },
] as const

/** Writes the orders to `path`, unless the file exists. The random numbers are seeded, so they are always the same. */
export async function ensureOrders(path: string): Promise<void> {
  if (existsSync(path)) return
  const partial = `${path}.partial`
  const file = createWriteStream(partial)
  for (const order of makeOrders()) file.write(`${JSON.stringify(order)}\n`)
  file.end()
  await finished(file)
  await rename(partial, path)
}

/** Yields the same orders each time. */
export function* makeOrders(): Generator<Order> {
  const random = seeded(20261012)
  for (let number = 1; number <= COUNT; number++) yield makeOrder(number, random)
}

function makeOrder(number: number, random: () => number): Order {
  const pick = <const List extends readonly [unknown, ...unknown[]]>(list: List): List[number] =>
    list[Math.floor(random() * list.length)] ?? list[0]
  const carrier = pick(CARRIERS)
  const placed = FIRST_DAY + Math.floor((number / COUNT) * DAYS) * DAY_MS
  const items = Array.from({ length: 1 + Math.floor(random() * 3) }, () => {
    return { ...pick(ARTICLES), quantity: 1 + Math.floor(random() * 4) }
  })
  const promised = placed + (3 + Math.floor(random() * 4)) * DAY_MS
  const cancelled = random() < 0.03
  const lateness = daysLate(carrier.name, day(placed), random)
  return {
    id: `ord_${String(number).padStart(6, '0')}`,
    placed_on: day(placed),
    customer: { id: `cus_${String(Math.floor(random() * 9000)).padStart(4, '0')}`, country: pick(carrier.countries) },
    carrier: carrier.name,
    items: items.map(({ sku, quantity, unit_cents }) => ({ sku, quantity, unit_cents })),
    total_cents: items.reduce((sum, { quantity, unit_cents }) => sum + quantity * unit_cents, 0),
    promised_on: day(promised),
    delivered_on: cancelled ? null : day(promised + lateness * DAY_MS),
    days_late: cancelled ? 0 : lateness,
    status: cancelled ? 'cancelled' : 'delivered',
  }
}

function daysLate(carrier: string, placedOn: string, random: () => number): number {
  const chance = random()
  const inStorm = carrier === 'Borealis' && placedOn >= STORM.from && placedOn <= STORM.to
  if (inStorm && chance < 0.16) return 2 + Math.floor(random() * 17)
  if (chance < 0.85) return 0
  return 1 + Math.floor(random() * (chance < 0.99 ? 4 : 9))
}

function day(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

/** Random numbers in [0, 1), the same for the same seed (mulberry32). */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
