import { isDelta } from '#util/queue/deltas.js'
import type { AnyRunEvent, Projection } from '../projection.js'

/** A protocol of a stream: how its items are made, and how they are written. */
export interface Protocol<Item> {
  readonly projection: Projection<Item>
  /** One frame of the body. */
  readonly encode: (item: Item) => string
  /** Names the protocol and its options: streams of one run with equal keys have equal items. Null: each has items of its own. */
  readonly key: string | null
}

/** Frames of deltas, by protocol: all readers of a run are at the same place when a delta comes. */
const shared = new WeakMap<AnyRunEvent, Map<string, string>>()

/** The frames of a run's events: those of one batch are one piece. `finale` ends them. */
export async function* eventFrames<Item>(
  batches: AsyncIterable<readonly AnyRunEvent[]>,
  { projection, encode, key }: Protocol<Item>,
  finale = '',
): AsyncGenerator<string, void, undefined> {
  for await (const batch of batches) {
    let piece = ''
    for (const event of batch) piece += framesOfEvent(event, { projection, encode, key })
    if (piece !== '') yield piece
  }
  const last = projection.end().map(encode).join('') + finale
  if (last !== '') yield last
}

function framesOfEvent<Item>(event: AnyRunEvent, { projection, encode, key }: Protocol<Item>): string {
  const items = projection.next(event)
  if (items.length === 0) return ''
  if (items.length > 1 || key === null || !isDelta(event)) return items.map(encode).join('')
  // The next piece of a part: the same for every reader.
  const known = shared.get(event) ?? new Map<string, string>()
  let frame = known.get(key)
  if (frame === undefined) {
    frame = items.map(encode).join('')
    shared.set(event, known.set(key, frame))
  }
  return frame
}
