import type { TranscriptEntry } from '#contracts/entry.js'
import { apply, copyOfState, stateAtFirst } from '#core/loop/apply.js'
import { conversationOf } from '#core/state/closing.js'
import type { DurableEvent } from '#core/state/events.js'
import { isReference, upToEntry } from '#core/state/history.js'
import type { Conversation } from '#core/state/history.js'
import type { RunState } from '#core/state/state.js'
import { viewOf } from '#core/state/view.js'
import { firstDifference } from '#util/first-difference.js'
import { isObject } from '#util/json.js'
import type { Book } from '../reading/book.js'
import { memberOf, objectAt, textAt } from '../reading/event-fields.js'

/** What went to the model at a turn. */
export interface RequestView {
  /** The conversation as the model got it: entries that a view shortened are in their short form. */
  readonly entries: readonly TranscriptEntry[]
  /** Index of the first entry that the request before did not have; 0 at the first turn. */
  readonly newFrom: number
  /** The first place before `newFrom` where the request differs from the one before: its cache was lost there. Null: there is none. */
  readonly difference: RequestDifference | null
  /** What else changed since the request before: `model`, `instructions`, `output`, `limits`, a tool by name. */
  readonly changed: readonly string[]
  /** Text that hooks added to the prompt; null: none. */
  readonly promptAddition: string | null
  /** The tools that were offered, by name, with a digest of each: the log has no more of them. Null: the log does not say. */
  readonly tools: Readonly<Record<string, string>> | null
  /** Digest of the instructions; null: the log does not say. */
  readonly instructions: string | null
  /** Why something is missing: in a sentence. Null: nothing is. */
  readonly problem: string | null
}

export interface RequestDifference {
  /** Index of the entry that differs. */
  readonly entry: number
  /** The place in it, such as `.content[0].text`. */
  readonly path: string
}

/**
 * What went to the model at turn `turn`, counted from 1: the fold of the log up to that request. Null if the log has no request of such a turn.
 *
 * @example
 * const request = requestAt(book, 'run_1', 3)
 * request?.entries.slice(request.newFrom) // what was new
 */
export function requestAt(book: Book, runId: string, turn: number): RequestView | null {
  const node = book.run(runId)?.turns[turn - 1]
  const event = node === undefined ? null : book.event({ runId, seq: node.seq })
  // Calls of a reply that another log has are a turn without a request.
  if (event?.kind !== 'model_request_started' && event?.kind !== 'model_message') return null
  const reader = readerOf(book, runId)
  const before = turn === 1 ? null : reader.at(turn - 1)
  const now = reader.at(turn)
  const [earlier, config] = [before?.entries ?? [], now.config]
  const differs = differenceOf(earlier, now.entries)
  const newFrom = differs?.isWithin === true ? differs.entry : Math.min(earlier.length, now.entries.length)
  return {
    entries: now.entries,
    newFrom,
    difference: differs?.isWithin === true ? { entry: differs.entry, path: differs.path } : null,
    changed: [
      ...(before !== null && before.model !== now.model ? ['model'] : []),
      ...(before === null ? [] : changedConfig(before.config, config)),
    ],
    promptAddition: textAt(event, 'promptAddition') || null,
    tools: config === null ? null : (objectAt(config, 'tools') as Readonly<Record<string, string>>),
    instructions: config === null ? null : textAt(config, 'instructions'),
    problem: now.problem,
  }
}

/** The state of a run when a request had begun. */
interface Requested {
  readonly entries: readonly TranscriptEntry[]
  readonly config: RunState['config']
  readonly model: string
  readonly problem: string | null
}

/** Folds a log up to its requests. What has been folded is kept: the next turn costs its own events alone. */
class RequestReader {
  readonly #book: Book
  readonly #runId: string
  #state: RunState | null = null
  /** The next line. */
  #line = 0
  #problem: string | null = null
  /** States at some of the lines, so that going back is cheap. */
  readonly #kept: { readonly line: number; readonly state: RunState; readonly problem: string | null }[] = []

  constructor(book: Book, runId: string) {
    this.#book = book
    this.#runId = runId
  }

  at(turn: number): Requested {
    const run = this.#book.run(this.#runId)
    const [node, log] = [run?.turns[turn - 1], this.#book.log(this.#runId)]
    const next = run?.turns[turn]
    // A view is changed between the event of the request and its reply.
    const until = node?.replySeq ?? next?.seq ?? (run?.lastSeq ?? 0) + 1
    const end = log?.indexOf(until) ?? -1
    this.#foldTo(end < 0 ? (log?.length ?? 0) : end)
    const state = this.#state
    if (state === null) return { entries: [], config: null, model: '', problem: this.#problem ?? NO_BEGINNING }
    const { config, provider, model } = state
    return { entries: [...viewOf(state).entries], config, model: `${provider}:${model}`, problem: this.#problem }
  }

  /** Takes the events of all lines before `end`. */
  #foldTo(end: number): void {
    if (end < this.#line) this.#goBack(end)
    for (; this.#line < end; this.#line++) {
      const event = this.#book.eventAt(this.#runId, this.#line)
      if (event === null || event['durable'] === false) continue
      if (event.kind === 'model_request_started') this.#keep()
      this.#take(event as unknown as DurableEvent)
    }
  }

  #goBack(end: number): void {
    const known = this.#kept.findLast(({ line }) => line <= end)
    this.#state = known === undefined ? null : copyOfState(known.state)
    this.#problem = known?.problem ?? null
    this.#line = known?.line ?? 0
  }

  #keep(): void {
    const last = this.#kept.at(-1)?.line ?? 0
    if (this.#state === null || this.#line - last < KEPT_EVERY) return
    this.#kept.push({ line: this.#line, state: copyOfState(this.#state), problem: this.#problem })
  }

  #take(event: DurableEvent): void {
    try {
      if (this.#state === null) this.#state = this.#opened(event)
      else this.#apply(this.#state, event)
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      this.#problem ??= `Event ${event.seq} of the log cannot follow those before it: ${message}`
    }
  }

  /** What is missing, or cannot follow, is passed over. */
  #apply(state: RunState, event: DurableEvent): void {
    if (event.seq > state.seq + 1) {
      this.#problem ??= `Events ${state.seq + 1} to ${event.seq - 1} are missing.`
      state.seq = event.seq - 1
    }
    apply(state, event)
  }

  #opened(event: DurableEvent): RunState {
    if (event.kind === 'run_started' && isObject(event.state)) {
      const { responses: _responses, signature: _signature, ...state } = event.state
      return apply(state as unknown as RunState, event)
    }
    if (event.kind !== 'run_started' || !isReference(event.history)) return stateAtFirst(event)
    const { runId, seq, entryId } = event.history
    const conversation = conversationAt(this.#book, runId, seq)
    const known = conversation === null ? null : upToEntry(conversation, entryId)
    if (known === null)
      this.#problem = `The conversation before it is in the log of run \`${runId}\`, which is not here.`
    return stateAtFirst(event, known ?? { entries: [] })
  }

  /** The conversation after event `seq`. */
  conversationAt(seq: number): Conversation | null {
    const index = this.#book.log(this.#runId)?.indexOf(seq) ?? -1
    if (index < 0) return null
    this.#foldTo(index + 1)
    return this.#state === null ? null : conversationOf(this.#state)
  }
}

const KEPT_EVERY = 1000
const NO_BEGINNING = 'The log does not have the beginning of the run.'

const readers = new WeakMap<Book, Map<string, RequestReader>>()

function readerOf(book: Book, runId: string): RequestReader {
  const known = readers.get(book) ?? new Map<string, RequestReader>()
  readers.set(book, known)
  const reader = known.get(runId) ?? new RequestReader(book, runId)
  known.set(runId, reader)
  return reader
}

function conversationAt(book: Book, runId: string, seq: number): Conversation | null {
  return book.has(runId) ? readerOf(book, runId).conversationAt(seq) : null
}

/** Where two requests part; null if the first is empty. `isWithin`: before the end of the earlier one. */
function differenceOf(
  before: readonly TranscriptEntry[],
  now: readonly TranscriptEntry[],
): { readonly entry: number; readonly path: string; readonly isWithin: boolean } | null {
  for (const [entry, earlier] of before.entries()) {
    const later = now[entry]
    if (later === earlier) continue
    const path = firstDifference(earlier, later)
    if (path !== undefined) return { entry, path, isWithin: true }
  }
  return null
}

function changedConfig(before: RunState['config'], now: RunState['config']): readonly string[] {
  if (before === null || now === null || before === now) return []
  const parts = (['instructions', 'output', 'limits'] as const).filter((part) => before[part] !== now[part])
  const names = new Set([...Object.keys(before.tools), ...Object.keys(now.tools)])
  const tools = [...names].filter((name) => memberOf(before.tools, name) !== memberOf(now.tools, name))
  return [...parts, ...tools]
}
