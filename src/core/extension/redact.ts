import type { HarnessResult } from '#contracts/result.js'
import { isObject, mapStrings } from '#util/json.js'
import { ArrivingReply, isDelta } from '#util/queue/deltas.js'
import type { RunEvent, StreamEvent } from '../state/events.js'
import { atOnce } from '#util/wrapped.js'
import { failedMember } from './context.js'
import type { Named } from './context.js'

export type Redact = (event: StreamEvent) => StreamEvent

/**
 * An event as readers and traces get it. Extensions see all of its members, also those that are not in its JSON.
 * @throws HarnessError `hook_failed` if a redaction throws, or returns something that is not an event of that kind.
 */
export function redactedEvent(redactions: readonly Named<Redact>[], event: StreamEvent): StreamEvent {
  const names = Object.getOwnPropertyNames(event)
  const hidden = names.filter((name) => !Object.prototype.propertyIsEnumerable.call(event, name))
  let shown = { ...event, ...Object.fromEntries(hidden.map((name) => [name, event[name as keyof StreamEvent]])) }
  for (const redaction of redactions) shown = { ...redactedBy(redaction, shown) }
  for (const name of hidden) if (name in shown) Object.defineProperty(shown, name, { enumerable: false })
  return shown
}

/**
 * The events of one run as readers get them. A secret may arrive in pieces: a reply is held until it is complete, and a structured
 * answer is not shown while it arrives.
 */
export class ReaderEvents {
  readonly #redactions: readonly Named<Redact>[]
  readonly #reply = new ArrivingReply<StreamEvent>()

  constructor(redactions: readonly Named<Redact>[]) {
    this.#redactions = redactions
  }

  /** What readers get for the next event. */
  next(event: StreamEvent): readonly StreamEvent[] {
    if (event.kind === 'output_delta') return []
    const parts = event.kind === 'model_message' ? this.#reply.deltas : []
    this.#reply.push(event)
    return isDelta(event) ? [] : [...parts, event].map((each) => redactedEvent(this.#redactions, each))
  }
}

/** A text as readers get it: like a text that a model says. */
export function textThrough(redact: (event: RunEvent) => RunEvent, text: string): string {
  const ids = { runId: '', parentRunId: null, parentToolCallId: null, agentName: null }
  const event = { kind: 'text_delta', ...ids, seq: 0, at: '', durable: false, text, partId: '' } as const
  const shown = redact(event)
  return shown.kind === 'text_delta' ? shown.text : text
}

/** A result with the words of the model as readers get them. What continues a run is unchanged: its transcript and its state. */
export function redactedResult<Result extends HarnessResult<unknown>>(
  redactions: readonly Named<Redact>[],
  result: Result,
): Result {
  if (redactions.length === 0) return result
  const shownText = (text: string): string =>
    textThrough((event) => redactedEvent(redactions, event as StreamEvent), text)
  const members = Object.getOwnPropertyDescriptors(result)
  const text = { ...members.text, value: shownText(result.text) }
  const isPaused = result.status === 'paused'
  const output = isPaused ? members.output : { ...members.output, value: mapStrings(result.output, shownText) }
  return Object.defineProperties({}, { ...members, text, output }) as Result
}

/** Stored events as readers get them. */
export async function* redactedEvents(
  redactions: readonly Named<Redact>[],
  events: AsyncIterable<RunEvent>,
): AsyncGenerator<RunEvent, void, undefined> {
  for await (const event of events) yield redactedEvent(redactions, event as StreamEvent)
}

function redactedBy({ extension, member }: Named<Redact>, event: StreamEvent): StreamEvent {
  try {
    const shown: unknown = atOnce('it', member(event))
    if (isObject(shown) && shown['kind'] === event.kind) return shown as unknown as StreamEvent
    throw new TypeError(`Expected an event of kind \`${event.kind}\`.`)
  } catch (cause) {
    throw failedMember(`The redaction of extension \`${extension}\``, cause)
  }
}
