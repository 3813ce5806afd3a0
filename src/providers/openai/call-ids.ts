import { createHash } from 'node:crypto'
import { stringOf } from './native.js'
import type { WireObject } from './native.js'

/** The ids of one reply's tool calls: those of the provider, replaced where they are missing or repeated. */
export class CallIds {
  readonly #callIdFor: (index: number) => string
  readonly #used = new Set<string>()

  constructor(callIdFor: (index: number) => string) {
    this.#callIdFor = callIdFor
  }

  /** The id of a call that stands at `position` of the output. To be asked once for each call. */
  give(position: number, item: WireObject): string {
    let id = stringOf(item['call_id']) || stringOf(item['id'])
    for (let at = position; id === '' || this.#used.has(id); at++) id = this.#callIdFor(at)
    this.#used.add(id)
    return id
  }
}

/** Longest call id that the API takes, in characters. */
const LONGEST = 64

/** A call id as the API takes it: any text up to 64 characters stays, a longer one becomes a hash of itself. */
export function wireCallId(callId: string): string {
  if (callId.length <= LONGEST) return callId
  return `call_${createHash('sha256').update(callId).digest('hex').slice(0, 48)}`
}
