import type { FollowedEvent } from '../client/follow-run.js'
import { textOfRun } from '#session/thread/reduce-chat.js'
import type { ChatRun, ChatSnapshot } from '#session/thread/reduce-chat.js'
import type { ContentPart } from '#contracts/entry.js'
import { answerActions, answeringAfter } from './answer-actions.js'
import type { AnswerActions, AnswerFacts } from './answer-actions.js'
import { LiveStore } from './live-store.js'
import type { RequestOutcome, ConnectionOptions, ConnectionStatus, LiveFacts, LoadedChat } from './live-store.js'
import type { ReadableStore } from './readable-store.js'

export interface FollowedRunOptions extends ConnectionOptions {
  readonly runId: string
  /** What was read before, with which the store begins. */
  readonly initial?: LoadedChat | null | undefined
  /** `onEvent` gets the events of child runs too. Default false. */
  readonly children?: boolean | undefined
  /** The reply arrives in pieces. Default true; `false`: each reply as a whole. */
  readonly deltas?: boolean | undefined
}

/** A run as a page shows it. Members that have not changed keep their identity. */
export interface FollowedRunState {
  readonly runId: string
  /** `loading` before anything is known. `paused`: it waits for people, see `pending`. */
  readonly status: 'loading' | ChatRun['status']
  /** The text of the reply that is arriving; of the last reply otherwise. */
  readonly text: string
  /** Messages, calls, usage and error; null before anything is known. */
  readonly run: ChatRun | null
  /** What people have to answer. */
  readonly pending: ChatSnapshot['pending']
  /** The calls whose answers are under way. */
  readonly answering: readonly string[]
  readonly tasks: ChatSnapshot['tasks']
  readonly connection: ConnectionStatus
  /** Why the connection, or the last request, failed; null after the next one that did not. Why the run failed is in `run`. */
  readonly error: Error | null
  /** Everything that is known; null before the first event. */
  readonly snapshot: ChatSnapshot | null
}

/** None of these rejects: each resolves with its outcome, and a refusal is the `error` of the store. */
export interface FollowedRunActions extends AnswerActions {
  /** A message that the run reads at its next turn. */
  readonly steer: (content: string | readonly ContentPart[]) => Promise<RequestOutcome>
  /** Cancels the run, or ends it if it waits. */
  readonly stop: () => Promise<RequestOutcome>
  /** Continues the run if its process has ended. */
  readonly recover: () => Promise<RequestOutcome>
  /** Opens the connection anew, such as after a login. */
  readonly reconnect: () => void
  readonly clearError: () => void
}

/** A run that is followed while somebody subscribes, and what a page can do with it. */
export interface FollowedRunStore extends ReadableStore<FollowedRunState>, FollowedRunActions {
  readonly runId: string
  /** Replaces `headers`, `fetch` and the other options of the connection. */
  readonly configure: (options: ConnectionOptions) => void
}

/**
 * A run of a server with `createHandlers`, for pages without React, or outside of it. It is followed across its pauses until it ends;
 * all subscribers share one connection.
 *
 * @example
 * const run = createRunStore({ runId, api: '/api' })
 * const unsubscribe = run.subscribe(() => show(run.getSnapshot().text))
 * await run.approve(run.getSnapshot().pending[0].callId)
 */
export function createRunStore(options: FollowedRunOptions): FollowedRunStore {
  const { runId, initial, children = false, deltas = true, ...connection } = options
  const path = `runs/${encodeURIComponent(runId)}`
  const query = [...(children ? ['children=1'] : []), ...(deltas ? [] : ['deltas=0'])].join('&')
  const live = new LiveStore<AnswerFacts, FollowedRunState>(connection, {
    path: `${path}/events${query === '' ? '' : `?${query}`}`,
    canBeAbsent: false,
    initial,
    own: { answering: [] },
    ownAfter: factsAfter,
    stateOf: (facts) => runState(runId, facts),
  })
  const { subscribe, getSnapshot, getServerSnapshot, configure, reconnect, clearError } = live
  return {
    ...{ runId, subscribe, getSnapshot, getServerSnapshot, configure, reconnect, clearError },
    ...answerActions(live, `${path}/answers`),
    steer: (content) => live.post(`${path}/input`, typeof content === 'string' ? { text: content } : { content }),
    stop: () => live.post(`${path}/stop`, {}),
    recover: () => live.post(`${path}/recover`, {}),
  }
}

function factsAfter(own: AnswerFacts, event: FollowedEvent): AnswerFacts {
  const answering = answeringAfter(own.answering, event)
  return answering === own.answering ? own : { answering }
}

function runState(runId: string, { snapshot, connection, error, own }: LiveFacts<AnswerFacts>): FollowedRunState {
  const run = snapshot?.runs.at(-1) ?? null
  const { pending, tasks } = snapshot ?? { pending: NONE, tasks: NONE }
  const text = run?.open?.text ?? textOfRun(run ?? undefined)
  const { answering } = own
  return { runId, status: run?.status ?? 'loading', text, run, pending, answering, tasks, connection, error, snapshot }
}

const NONE: readonly never[] = []
