import { followError } from '../client/follow-run.js'
import type { FollowedEvent } from '../client/follow-run.js'
import { reduceChat } from '#session/thread/reduce-chat.js'
import type { ChatRun, ChatSnapshot } from '#session/thread/reduce-chat.js'
import type { ContentPart } from '#contracts/entry.js'
import type { JsonObject } from '#util/json.js'
import { answerActions, answeringAfter } from './answer-actions.js'
import type { AnswerActions, AnswerFacts } from './answer-actions.js'
import { LiveStore, request } from './live-store.js'
import type { RequestOutcome, ConnectionOptions, ConnectionStatus, LiveFacts, LoadedChat } from './live-store.js'
import type { ReadableStore } from './readable-store.js'

export interface ChatThreadOptions extends ConnectionOptions {
  readonly threadId: string
  /** What was read on the server (`loadChatThread`). Default: everything is read by the store. */
  readonly initial?: LoadedChat | null | undefined
}

/** A conversation as a page shows it. Members that have not changed keep their identity. */
export interface ChatThreadState {
  readonly threadId: string
  /** Empty before it has one; the beginning of its first message until it is named. */
  readonly title: string
  /** The mode of the next message; empty before it is known. */
  readonly mode: string
  /** `waiting`: for people, see `pending`. */
  readonly phase: ChatSnapshot['phase']
  /** The runs, oldest first; `chatItems` makes a list of messages and calls of them. */
  readonly runs: readonly ChatRun[]
  /** Messages of this page that are not in the conversation yet. */
  readonly sending: readonly OutgoingMessage[]
  /** What people have to answer. */
  readonly pending: ChatSnapshot['pending']
  /** The calls whose answers are under way. */
  readonly answering: readonly string[]
  /** Messages that wait for the end of the run. */
  readonly queue: ChatSnapshot['queue']
  /** The queue waits until it is released, or a message is sent. */
  readonly held: boolean
  readonly tasks: ChatSnapshot['tasks']
  readonly connection: ConnectionStatus
  /** Why the connection, or the last request, failed; null after the next one that did not. */
  readonly error: Error | null
  /** Everything that is known; null before the first event. */
  readonly snapshot: ChatSnapshot | null
}

/** A message that was sent from this page. */
export interface OutgoingMessage {
  readonly messageId: string
  readonly content: readonly ContentPart[]
  /** `failed`: `resend` sends it again, `discard` drops it. */
  readonly status: 'sending' | 'failed'
}

export interface SendMessageOptions {
  /** What becomes of it while a run is in progress or waits: it waits too, is read at the next turn, or is refused. Default `queue`. */
  readonly whenBusy?: 'queue' | 'steer' | 'decline' | 'reject' | undefined
  /** The mode of this message alone. */
  readonly mode?: string | undefined
  /** Becomes the member `page` of the run's metadata. */
  readonly metadata?: JsonObject | undefined
  /** The same id twice is one message. Default: a new one. */
  readonly messageId?: string | undefined
}

/** How the server has received a message. `runId`: the run that reads it; null if it waits. */
export interface SentMessage {
  readonly messageId: string
  readonly status: 'started' | 'queued' | 'steered' | 'posted' | 'attached'
  readonly runId: string | null
}

/** None of these rejects: each resolves with its outcome, and a refusal is the `error` of the store. */
export interface ChatThreadActions extends AnswerActions {
  /** Sends a message. The first one begins the conversation. */
  readonly send: (
    content: string | readonly ContentPart[],
    options?: SendMessageOptions,
  ) => Promise<RequestOutcome<SentMessage>>
  /** A message that the run in progress reads at its next turn; without one, it begins a run. */
  readonly steer: (content: string | readonly ContentPart[]) => Promise<RequestOutcome<SentMessage>>
  /** Sends a message again that has failed. */
  readonly resend: (messageId: string) => Promise<RequestOutcome<SentMessage>>
  /** Drops a message that has failed. */
  readonly discard: (messageId: string) => void
  /** Cancels the run in progress, or ends one that waits. The queue is held. */
  readonly stop: () => Promise<RequestOutcome>
  /**
   * Answers a message again, by a new run: also one whose run failed or was stopped. That run and all later ones leave the conversation.
   * `id`: of the message, or of its run. Default: the latest. Refused while a run is in progress.
   */
  readonly regenerate: (id?: string) => Promise<RequestOutcome>
  /** Continues a run whose process has ended; so does the next message. */
  readonly recover: () => Promise<RequestOutcome>
  readonly rename: (title: string) => Promise<RequestOutcome>
  readonly setMode: (mode: string) => Promise<RequestOutcome>
  /** Takes messages out of the queue. */
  readonly unqueue: (...messageIds: readonly string[]) => Promise<RequestOutcome>
  /** Sends a queue that is held. */
  readonly releaseQueue: () => Promise<RequestOutcome>
  /** Opens the connection anew, such as after a login. */
  readonly reconnect: () => void
  readonly clearError: () => void
}

/** A conversation that is followed while somebody subscribes, and what a page can do with it. */
export interface ChatThreadStore extends ReadableStore<ChatThreadState>, ChatThreadActions {
  readonly threadId: string
  /** Replaces `headers`, `fetch` and the other options of the connection. */
  readonly configure: (options: ConnectionOptions) => void
}

interface ThreadFacts extends AnswerFacts {
  readonly sending: readonly (OutgoingMessage & { readonly options: SendMessageOptions })[]
}

/**
 * A conversation of a server with `createHandlers`, for pages without React, or outside of it. It connects with the first subscriber,
 * shares the connection among all, and closes it after the last.
 *
 * @example
 * const chat = createChatThreadStore({ threadId: 't1', api: '/api' })
 * const unsubscribe = chat.subscribe(() => render(chat.getSnapshot()))
 * await chat.send('Where is my order?')
 */
export function createChatThreadStore({ threadId, initial, ...options }: ChatThreadOptions): ChatThreadStore {
  const path = threadPath(threadId)
  const own: ThreadFacts = { sending: [], answering: [] }
  const live = new LiveStore<ThreadFacts, ChatThreadState>(options, {
    path: `${path}/events`,
    canBeAbsent: true,
    initial,
    own,
    ownAfter: factsAfter,
    stateOf: (facts) => threadState(threadId, facts),
  })
  const { subscribe, getSnapshot, getServerSnapshot, configure, reconnect, clearError } = live
  const change = (body: object): Promise<RequestOutcome> => live.post(`${path}/change`, body)
  return {
    ...{ threadId, subscribe, getSnapshot, getServerSnapshot, configure, reconnect, clearError },
    ...messageActions(live, path),
    ...answerActions(live, `${path}/answers`),
    stop: () => live.post(`${path}/stop`, {}),
    regenerate: (messageId) => live.post(`${path}/regenerate`, { messageId }),
    recover: () => live.post(`runs/${encodeURIComponent(live.snapshot?.runs.at(-1)?.runId ?? '')}/recover`, {}),
    rename: (title) => change({ title }),
    setMode: (mode) => change({ mode }),
    unqueue: (...remove) => change({ remove }),
    releaseQueue: () => change({ release: true }),
  }
}

function threadPath(threadId: string): string {
  return `threads/${encodeURIComponent(threadId)}`
}

type Sent = Promise<RequestOutcome<SentMessage>>

function messageActions(
  live: LiveStore<ThreadFacts, ChatThreadState>,
  path: string,
): Pick<ChatThreadActions, 'send' | 'steer' | 'resend' | 'discard'> {
  const setSending = (sending: ThreadFacts['sending']): void => live.set({ own: { ...live.own, sending } })
  const others = (messageId: string): ThreadFacts['sending'] =>
    live.own.sending.filter((message) => message.messageId !== messageId)

  const deliver = async (messageId: string, content: readonly ContentPart[], options: SendMessageOptions): Sent => {
    const message = { messageId, content, options } as const
    setSending([...others(messageId), { ...message, status: 'sending' }])
    const outcome = await live.post<SentMessage>(`${path}/messages`, { ...options, messageId, content })
    // It may have arrived although its answer did not.
    if (!outcome.ok && live.own.sending.some((each) => each.messageId === messageId))
      setSending([...others(messageId), { ...message, status: 'failed' }])
    return outcome
  }
  const send: ChatThreadActions['send'] = (content, options = {}) =>
    deliver(
      options.messageId ?? newMessageId(),
      typeof content === 'string' ? [{ type: 'text', text: content }] : content,
      options,
    )
  return {
    send,
    steer: (content) => send(content, { whenBusy: 'steer' }),
    resend: async (messageId) => {
      const failed = live.own.sending.find((message) => message.messageId === messageId)
      if (failed === undefined)
        return { ok: false, error: new Error(`No message \`${messageId}\` of this page has failed.`) }
      return deliver(messageId, failed.content, failed.options)
    },
    discard: (messageId) => setSending(others(messageId)),
  }
}

/** A message is in the conversation with its event; a refused one is not in it, and its sender is told by the answer. */
function factsAfter(own: ThreadFacts, event: FollowedEvent): ThreadFacts {
  const answering = answeringAfter(own.answering, event)
  const told = event.kind === 'message_queued' ? [event.messageId] : event.kind === 'run_begun' ? event.messageIds : []
  const sending = own.sending.filter(({ messageId }) => !told.includes(messageId))
  if (answering === own.answering && sending.length === own.sending.length) return own
  return { answering, sending }
}

const NOTHING = { runs: [], pending: [], queue: [], tasks: [] } as const

function threadState(threadId: string, { snapshot, connection, error, own }: LiveFacts<ThreadFacts>): ChatThreadState {
  const { phase = 'idle', held = false, thread } = snapshot ?? {}
  const { runs, pending, queue, tasks } = snapshot ?? NOTHING
  const { title = '', firstMessage = '', mode = '' } = thread ?? {}
  const { sending, answering } = own
  return {
    ...{
      threadId,
      title: title === '' ? firstMessage : title,
      mode,
      phase,
      runs,
      sending,
      pending,
      answering,
      queue,
      held,
    },
    ...{ tasks, connection, error, snapshot },
  }
}

/**
 * The conversation as it is stored, read once, for rendering on a server: `initial` of the store continues from there. Null if there is no
 * such conversation. Throws a `FollowError` for a refusal.
 *
 * @example
 * const initial = await loadChatThread({ threadId, api: 'http://localhost/api', fetch: (url, init) => events(new Request(url, init)) })
 */
export async function loadChatThread({ threadId, ...options }: ChatThreadOptions): Promise<LoadedChat | null> {
  const response = await request(options, `${threadPath(threadId)}/events?wait=0`, {})
  if (response.status === 404) return null
  if (!response.ok) throw await followError(response)
  const events = (await response.json()) as readonly FollowedEvent[]
  const snapshot = events.reduce<ChatSnapshot | undefined>(reduceChat, undefined)
  return snapshot === undefined ? null : { snapshot, cursor: response.headers.get('x-cursor') ?? '0' }
}

/** `randomUUID` exists on secure pages alone. */
function newMessageId(): string {
  const bytes = globalThis.crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
