import type { AnyRunEvent } from '../projection.js'

type Delta = Extract<AnyRunEvent, { readonly kind: 'text_delta' | 'reasoning_delta' | 'tool_input_delta' }>

/** The reply that is arriving: one delta a part. */
export class OpenTurn {
  #deltas: Delta[] = []

  /** The deltas so far, joined by part. */
  get deltas(): readonly AnyRunEvent[] {
    return this.#deltas
  }

  /** Takes the next event of the run. */
  push(event: AnyRunEvent): void {
    if (isDelta(event)) this.#add(event)
    else if (changesTurn(event)) this.#deltas = []
  }

  #add(event: Delta): void {
    const index = this.#deltas.findLastIndex((each) => partOf(each) === partOf(event))
    const known = this.#deltas[index]
    if (known === undefined) this.#deltas.push(event)
    // A copy: readers have been given the earlier one.
    else this.#deltas[index] = { ...known, text: known.text + event.text }
  }
}

/** True for the events by which a turn begins, ends, or begins again. */
export function changesTurn({ kind }: AnyRunEvent): boolean {
  return kind === 'model_request_started' || kind === 'deltas_withdrawn' || endsTurn(kind)
}

/** True if no delta of the turn follows the event. */
export function endsTurn(kind: AnyRunEvent['kind']): boolean {
  return kind === 'model_message' || kind === 'run_completed' || kind === 'run_failed' || kind === 'run_left'
}

export function isDelta(event: AnyRunEvent): event is Delta {
  return event.kind === 'text_delta' || event.kind === 'reasoning_delta' || event.kind === 'tool_input_delta'
}

/** Two neighbouring deltas of one part as one; null for anything else. */
export function joinedDeltas(earlier: AnyRunEvent, later: AnyRunEvent): AnyRunEvent | null {
  if (!isDelta(earlier) || !isDelta(later) || earlier.runId !== later.runId) return null
  return partOf(earlier) === partOf(later) ? { ...later, text: earlier.text + later.text } : null
}

function partOf(event: Delta): string {
  return 'partId' in event ? `${event.kind} ${event.partId}` : event.callId
}
