import { GrowingText } from '../growing-text.js'

/** A piece of a reply that is arriving. */
export interface Delta {
  readonly kind: 'text_delta' | 'reasoning_delta' | 'tool_input_delta'
  readonly runId: string
  readonly seq: number
  readonly text: string
}

interface Part {
  readonly kind: string
  readonly runId?: string
  readonly partId?: string
  readonly callId?: string | null
}

export function isDelta(event: { readonly kind: string }): event is Delta {
  return event.kind === 'text_delta' || event.kind === 'reasoning_delta' || event.kind === 'tool_input_delta'
}

/** True for two pieces of one part of a reply, or of one call. */
export function areOfOnePart(one: Part, other: Part): boolean {
  if (one.kind !== other.kind || one.runId !== other.runId) return false
  return one.partId === other.partId && one.callId === other.callId
}

/** Two neighbouring deltas of one part as one; null for anything else. */
export function joinDeltas<Event extends { readonly kind: string }>(earlier: Event, later: Event): Event | null {
  if (!isDelta(earlier) || !isDelta(later) || !areOfOnePart(earlier, later)) return null
  return { ...later, text: earlier.text + later.text }
}

/** True if no delta of the reply follows an event of this kind. */
export function endsReply(kind: string): boolean {
  return kind === 'model_message' || kind === 'run_completed' || kind === 'run_failed' || kind === 'run_left'
}

/** True if the deltas that follow an event of this kind are a whole reply. */
export function beginsReply(kind: string): boolean {
  return kind === 'model_request_started' || kind === 'deltas_withdrawn'
}

/** Parts of a reply to which a delta may belong. */
const MOST_PARTS = 1000

/** The reply of a run that is arriving: the deltas so far, joined by part. */
export class ArrivingReply<Event extends { readonly kind: string; readonly seq: number }> {
  #parts: { readonly delta: Event & Delta; readonly text: GrowingText }[] = []
  #seq = 0

  get isEmpty(): boolean {
    return this.#parts.length === 0
  }

  /** One delta a part, as if they had just arrived. */
  get deltas(): readonly Event[] {
    return this.#parts.map(({ delta, text }) => ({ ...delta, text: text.whole, seq: this.#seq }))
  }

  /** Takes the next event of the run. */
  push(event: Event): void {
    this.#seq = event.seq
    if (isDelta(event)) this.#textOf(event).add(event.text)
    else if (event.kind === 'run_started' || beginsReply(event.kind) || endsReply(event.kind)) this.#parts = []
  }

  #textOf(delta: Event & Delta): GrowingText {
    // Of a reply with more parts, only what comes one after the other is joined: to look through all would take minutes.
    const recent = this.#parts.length <= MOST_PARTS ? this.#parts : this.#parts.slice(-1)
    const known = recent.findLast((part) => areOfOnePart(part.delta, delta))
    if (known !== undefined) return known.text
    const text = new GrowingText()
    this.#parts.push({ delta, text })
    return text
  }
}
