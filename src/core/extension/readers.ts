import { textOf } from '#contracts/entry.js'
import { ArrivingParts, chained, FilteredTexts, holding, openedWhenAsked } from '#contracts/reply-filter.js'
import type { OutputFilter } from '#contracts/reply-filter.js'
import type { HarnessResult, RunReport } from '#contracts/result.js'
import { isObject, mapStrings } from '#util/json.js'
import { isDelta } from '#util/queue/deltas.js'
import { atOnce } from '#util/wrapped.js'
import type { ModelDelta } from '../model-session.js'
import type { DurablePayloads, RunEvent, StreamEvent } from '../state/events.js'
import { failedMember } from './context.js'
import type { Named } from './context.js'

export type Redact = (event: StreamEvent) => StreamEvent

type Reply = StreamEvent & { readonly kind: 'model_message' }

/** The members of extensions that stand between runs and their readers. */
export interface ReaderMembers {
  readonly redactions: readonly Named<Redact>[]
  readonly outputs: readonly Named<() => OutputFilter>[]
}

/** What readers see of runs: the one place for streams, logs that are served, results, errors and traces. */
export class Readers {
  readonly #redactions: ReaderMembers['redactions']
  readonly #outputs: ReaderMembers['outputs']

  /** What comes from models and tools, through the filters. */
  readonly #texts: FilteredTexts

  constructor({ redactions, outputs }: ReaderMembers) {
    this.#redactions = redactions
    this.#outputs = outputs
    this.#texts = new FilteredTexts(() => chained(outputs.map(openedFilter)))
  }

  /** A redaction needs whole texts: a reply is held until it is complete, and a structured answer is not shown before. */
  get holdReplies(): boolean {
    return this.#redactions.length > 0
  }

  get filterReplies(): boolean {
    return this.#outputs.length > 0
  }

  /** A reply that arrives, through the filters. */
  reply(): ArrivingParts<ModelDelta> {
    const filters = this.#outputs.map(openedFilter)
    return new ArrivingParts(chained(this.holdReplies ? [...filters, holding()] : filters))
  }

  /**
   * An event as readers and traces get it: the event itself if nothing changes it. Redactions see all of its members, also those
   * that are not in its JSON. `isArriving`: its deltas have passed the filters.
   * @throws HarnessError `hook_failed` if a member fails, or a redaction returns something that is not an event of that kind.
   */
  event(event: StreamEvent, isArriving = false): StreamEvent {
    const isFiltered = this.filterReplies && !(isArriving && isDelta(event))
    const isBlocked = event.kind === 'model_message' && event.blocked !== undefined
    if (!isFiltered && !isBlocked && !this.holdReplies) return event
    const hidden = Object.getOwnPropertyNames(event).filter((name) => !Object.keys(event).includes(name))
    let shown = { ...event, ...Object.fromEntries(hidden.map((name) => [name, event[name as keyof StreamEvent]])) }
    if (isFiltered) Object.assign(shown, this.#texts.json({ ...event }))
    if (shown.kind === 'model_message' && event.kind === 'model_message') {
      if (isBlocked) shown = withoutParts(shown)
      // Parts that are filtered one by one are one text together.
      if (isFiltered) Object.assign(shown, this.#texts.json({ text: isBlocked ? '' : textOf(event.entry.parts) }))
      if (isFiltered) hidden.push('text')
    }
    for (const redaction of this.#redactions) shown = { ...redactedBy(redaction, shown) }
    for (const name of hidden) if (name in shown) Object.defineProperty(shown, name, { enumerable: false })
    return shown
  }

  /** A text as readers get it: like a text that a model says. */
  text(text: string): string {
    return textThrough((event) => this.event(event as StreamEvent), text)
  }

  /** A result, or a report, as readers get it. Redactions leave its transcript as it is, and nothing changes its state. */
  result<Result extends HarnessResult<unknown> | RunReport>(result: Result): Result {
    const changed: Record<string, unknown> = {}
    if ('text' in result) {
      changed['text'] = this.text(result.text)
      if (result.status !== 'paused') changed['output'] = mapStrings(result.output, (text) => this.text(text))
    }
    if (this.filterReplies) {
      for (const name of ['transcript', 'toolCallRecords', 'pending'] as const)
        if (name in result) changed[name] = this.#texts.json(result[name as keyof Result])
      // As the provider has sent them.
      changed['responses'] = []
    }
    const descriptors = Object.fromEntries(
      Object.entries(changed).map(([name, value]) => [
        name,
        { value, writable: true, enumerable: true, configurable: true },
      ]),
    )
    return Object.defineProperties({}, { ...Object.getOwnPropertyDescriptors(result), ...descriptors }) as Result
  }

  /**
   * Checks that readers may see a reply; gives its structured answer as they see it.
   * @throws what a filter throws: `guard_blocked`, or a `ModelRetry`; `hook_failed` if it fails.
   */
  check({ entry, resolution }: Pick<DurablePayloads['model_message'], 'entry' | 'resolution'>): unknown {
    this.#texts.parts(entry.parts)
    return resolution.kind === 'final' ? mapStrings(resolution.output, (text) => this.#texts.whole(text)) : undefined
  }
}

/** A reply that nobody may see: its usage alone. */
function withoutParts(event: Reply): Reply {
  const { resolvedCalls: _calls, ...shown } = event
  const { native: _native, ...entry } = event.entry
  return { ...shown, entry: { ...entry, parts: [] } }
}

function openedFilter({ extension, member }: Named<() => OutputFilter>): OutputFilter {
  return openedWhenAsked(member, (cause) => failedMember(`\`output\` of extension \`${extension}\``, cause))
}

/** A text as readers get it: like a text that a model says. */
export function textThrough(redact: (event: RunEvent) => RunEvent, text: string): string {
  const ids = { runId: '', parentRunId: null, parentToolCallId: null, agentName: null }
  const event = { kind: 'text_delta', ...ids, seq: 0, at: '', durable: false, text, partId: '' } as const
  const shown = redact(event)
  return shown.kind === 'text_delta' ? shown.text : text
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

/** Readers of a harness without filters: what was blocked stays hidden. */
export const NO_FILTERS = new Readers({ redactions: [], outputs: [] })
