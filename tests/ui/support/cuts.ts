import { framesOf } from '#ui/client/frames.js'

/** Random cuts of one body: in the long form as many as a client has to survive. */
export const CUTS = process.env['RUNS'] === undefined ? 3 : 64

/** How far cuts at regular places are apart, in bytes: the long form cuts at every byte. */
export const STEP = process.env['EVERY_BYTE'] === '1' ? 1 : 397

/**
 * What a client has got of a body of server-sent events that breaks off after so many bytes: each distinct list of whole items
 * once, however many cuts lead to it.
 */
export async function beginnings<Item>(
  body: Uint8Array,
  cuts: readonly number[],
): Promise<readonly (readonly Item[])[]> {
  const found = new Map<number, readonly Item[]>()
  for (const cut of cuts) {
    const items: Item[] = []
    const response = new Response(body.slice(0, cut))
    if (response.body === null) continue
    for await (const { data } of framesOf(response.body)) if (data !== '[DONE]') items.push(JSON.parse(data) as Item)
    found.set(items.length, items)
  }
  return [...found.values()]
}

/** Places of a body that are so many bytes apart. */
export function placesOf(body: Uint8Array, step: number): readonly number[] {
  return Array.from({ length: Math.floor(body.length / step) + 1 }, (_, index) => index * step)
}
