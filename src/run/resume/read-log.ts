import { HarnessError, messageOf } from '#contracts/errors.js'
import { eventsIn } from '#core/log/log.js'
import type { RunLog } from '#core/log/log.js'
import { runRef } from '#core/log/ref.js'
import { apply } from '#core/loop/apply.js'
import { conversationOf } from '#core/state/closing.js'
import { FORMAT_VERSION } from '#core/state/events.js'
import type { DurableEvent, DurablePayloads } from '#core/state/events.js'
import { isReference, upToEntry } from '#core/state/history.js'
import type { Conversation, HistoryRef } from '#core/state/history.js'
import { openState, queuedState } from '#core/state/state.js'
import type { RunState } from '#core/state/state.js'
import { shownValue } from '#util/mismatch.js'
import { readState } from './stored-state.js'
import type { StoredState } from './stored-state.js'

/** A run as its log holds it. */
export interface FoldedRun extends StoredState {
  readonly last: DurableEvent
}

export interface FoldOptions {
  /** The last event. Default: all. */
  readonly upTo?: number
  /** Called with each event. */
  readonly onEvent?: (event: DurableEvent) => void
}

/** Folds the events that a log holds of a run; null if it holds none. */
export async function foldLog(
  log: RunLog,
  runId: string,
  { upTo = Infinity, onEvent }: FoldOptions = {},
): Promise<FoldedRun | null> {
  let found: StoredState | null = null
  let last: DurableEvent | null = null
  for await (const event of eventsIn(log, runRef(runId))) {
    if (event.seq > upTo) break
    checkVersion(event)
    if (found === null) found = await opened(event, (start) => resolveHistory(log, start))
    else applyStored(found.state, event)
    onEvent?.(event)
    last = event
  }
  return found === null || last === null ? null : { ...found, last }
}

/** Changes a state by an event that a log holds. Throws `invalid_log` for one that cannot follow, or is not whole. */
export function applyStored(state: RunState, event: DurableEvent): RunState {
  return ofLog(event, () => apply(state, event))
}

function ofLog<T>({ runId }: DurableEvent, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    if (cause instanceof HarnessError) throw cause
    throw new HarnessError('invalid_log', `The log of run \`${runId}\` is damaged: ${messageOf(cause)}`, { cause })
  }
}

/** Throws `invalid_log` for the beginning of a run in another format than this version of the package reads. */
export function checkVersion(event: DurableEvent): void {
  const version: unknown = event.kind === 'run_started' || event.kind === 'run_queued' ? event.version : FORMAT_VERSION
  if (version === FORMAT_VERSION) return
  const found = version === undefined ? 'has no `version`' : `has version ${shownValue(version)}`
  const message = `The log of run \`${event.runId}\` ${found}, and this package reads version ${FORMAT_VERSION}.`
  throw new HarnessError('invalid_log', message)
}

/** The conversation that a run continues, as its `run_started` has it. */
export type StartHistory = Pick<DurablePayloads['run_started'], 'history' | 'view'>

/** Finds the conversation that a run continues. */
export type ResolveHistory = (start: StartHistory) => Promise<Conversation>

/** The state at the first event of a log: of a run that begins there, or that continues there from a stored state. */
export async function opened(event: DurableEvent, resolve: ResolveHistory): Promise<StoredState> {
  if (event.kind === 'run_queued') return { state: ofLog(event, () => queuedState(event)), responses: [] }
  if (event.kind !== 'run_started') {
    throw new HarnessError(
      'invalid_log',
      `The log of run \`${event.runId}\` begins with \`${event.kind}\`, not with \`run_started\`.`,
    )
  }
  if (event.state === undefined) {
    const conversation = await resolve(event)
    return { state: ofLog(event, () => openState(event, conversation)), responses: [] }
  }
  const { state, responses } = readState(event.state, `The log of run \`${event.runId}\``, null)
  return { state: applyStored(state, event), responses }
}

/**
 * The conversation that a run of `log` continues, with that of the runs before it. Rejects with `invalid_log` if the log
 * does not hold it.
 */
export async function resolveHistory(log: RunLog, { history, view }: StartHistory): Promise<Conversation> {
  if (!isReference(history)) return { entries: history, ...(view && { view }) }
  const recent = byLog.get(log)?.get(keyOf(history))
  if (recent !== undefined) return recent
  const { runId, seq, entryId } = history
  const found = await foldLog(log, runId, { upTo: seq })
  const conversation = found?.state.seq === seq ? upToEntry(conversationOf(found.state), entryId) : null
  if (conversation !== null) {
    rememberConversation(log, history, conversation)
    return conversation
  }
  const message = `The log does not hold the conversation of run \`${runId}\` up to event ${seq}, which another run continues.`
  throw new HarnessError('invalid_log', message)
}

/** How many conversations are remembered for each log. */
const MOST = 16

/**
 * The conversations that runs of this process have continued last. Stored events do not change, so the next run of a
 * conversation does not have to read all earlier ones.
 */
const byLog = new WeakMap<RunLog, Map<string, Conversation>>()

export function rememberConversation(log: RunLog, reference: HistoryRef, conversation: Conversation): void {
  const recent = byLog.get(log) ?? new Map<string, Conversation>()
  byLog.set(log, recent)
  const key = keyOf(reference)
  recent.delete(key)
  recent.set(key, conversation)
  for (const oldest of recent.keys()) {
    if (recent.size <= MOST) break
    recent.delete(oldest)
  }
}

function keyOf({ runId, seq, entryId }: HistoryRef): string {
  return `${seq} ${entryId} ${runId}`
}
