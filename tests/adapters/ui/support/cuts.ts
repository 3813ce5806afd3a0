import { appendFileSync } from 'node:fs'
import { afterAll } from 'vitest'
import { readFrames } from '#adapters/ui/client/frames.js'

const IS_LONG = process.env['RUNS'] !== undefined

/** Random cuts of one body: in the long form as many as a client has to survive. */
export const CUTS = IS_LONG ? 64 : 3

/** How far cuts at regular places are apart, in bytes: the long form cuts at every byte. */
export const STEP = Number(process.env['EVERY_BYTE'] ?? 397)

/**
 * What a client has got of a body of server-sent events that breaks off after so many bytes: each distinct list of whole items
 * once, however many cuts lead to it.
 */
export async function beginnings<Item>(
  body: Uint8Array,
  cuts: readonly number[],
): Promise<readonly (readonly Item[])[]> {
  const found = await distinctCuts(body, cuts)
  return found.map(({ frames }) => frames.filter((data) => data !== '[DONE]').map((data) => JSON.parse(data) as Item))
}

/** Cuts, each with the frames that a client has got: of cuts with the same frames the last one. */
export async function distinctCuts(
  body: Uint8Array,
  cuts: readonly number[],
): Promise<readonly { readonly cut: number; readonly frames: readonly string[] }[]> {
  const found = new Map<number, { readonly cut: number; readonly frames: readonly string[] }>()
  for (const cut of cuts) {
    const frames: string[] = []
    const response = new Response(body.slice(0, cut))
    if (response.body === null) continue
    for await (const { data } of readFrames(response.body)) frames.push(data)
    found.set(frames.length, { cut, frames })
  }
  return [...found.values()]
}

/** Where the stream of a generated run is cut: at random bytes, and in the long form behind each item as well. */
export function cutsOf(body: Uint8Array, random: readonly number[]): readonly number[] {
  const bytes = random.map((place) => place % (body.length + 1))
  return IS_LONG ? [...bytes, ...endsOfItems(body)] : bytes
}

function endsOfItems(body: Uint8Array): readonly number[] {
  const NEWLINE = 10
  return [...body.keys()].filter((place) => body[place - 1] === NEWLINE && body[place - 2] === NEWLINE)
}

/** Counts of one protocol. */
export interface Tally {
  corpusRuns: number
  generatedRuns: number
  /** Streams that were cut: live ones and those from the log. */
  streams: number
  /** Places at which they were cut. */
  cuts: number
  /** Readings that were cut and resumed: cuts between the same two items are one. */
  readings: number
}

/** Counts what the tests of a file cut, for `npm run cuts`. Call it once for each protocol. */
export function tallyOf(protocol: string): Tally {
  const tally: Tally = { corpusRuns: 0, generatedRuns: 0, streams: 0, cuts: 0, readings: 0 }
  afterAll(() => {
    const totals = process.env['CUTS_TOTALS']
    if (totals !== undefined) appendFileSync(totals, `${JSON.stringify({ protocol, ...tally })}\n`)
  })
  return tally
}

/** Places of a body that are so many bytes apart. */
export function placesOf(body: Uint8Array, step: number): readonly number[] {
  return Array.from({ length: Math.floor(body.length / step) + 1 }, (_, index) => index * step)
}
