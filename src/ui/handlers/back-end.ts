import type { Answer, ContentPart, InputMessage, PendingItem, RunStatus } from '../../index.js'
import type { ChatEvent, EventsOptions, ThreadItem } from '../../session/index.js'
import type { StoredRun } from '../hub/continued-runs.js'
import type { FollowRunOptions } from '../hub/follow.js'
import type { AnyRunEvent } from '../projection.js'

/** Who asks, as `authorize` says. */
export interface Access {
  /** The owner of the threads: another owner's thread is like one that does not exist. */
  readonly resourceId: string
  /** The name of the person, for the log. */
  readonly by?: string | undefined
  /** The dependencies of a run that begins or continues. Only over a harness. */
  readonly deps?: unknown
}

/** Who asks if there is no `authorize`: this machine. It also reaches runs without an owner. */
export const LOCAL: Access = { resourceId: 'local' }

/** A run of a thread. */
export interface RunInfo {
  readonly runId: string
  readonly status: RunStatus
  /** Items that people have to answer. */
  readonly pending: readonly PendingItem[]
  /** Number of its last event. */
  readonly seq: number
}

/** A person's message. */
export interface NewMessage {
  readonly messageId: string
  readonly content: readonly ContentPart[]
  readonly metadata?: object | undefined
  /** What becomes of it while a run is in progress or waits. */
  readonly whenBusy?: 'queue' | 'steer' | 'decline' | 'reject' | undefined
  /** The mode of this message alone, or the name of the harness that serves it. */
  readonly mode?: string | undefined
}

/** A change of a conversation that begins nothing. */
export interface ThreadChange {
  readonly title?: string
  readonly mode?: string
  /** Messages that leave the queue. */
  readonly remove?: readonly string[]
  /** A held queue continues. */
  readonly release?: true
}

/** What a request has begun, or attached to. */
export interface Taken {
  readonly status: 'started' | 'queued' | 'steered' | 'posted' | 'attached'
  /** The run that reads the message, and where its stream begins; null if none does. A queued message waits for it. */
  readonly run: Promise<{ readonly runId: string; readonly beyond?: number } | null>
}

/** One conversation, for the requests of one owner. */
export interface ThreadPort {
  readonly threadId: string
  /** Its runs, oldest first. */
  runs(): Promise<readonly RunInfo[]>
  /** The runs of another conversation that it continues, oldest first; absent if conversations have no forks. */
  continued?(): Promise<readonly StoredRun[]>
  latest(): Promise<RunInfo | null>
  /** The events of one of its runs, up to its next pause or its end. */
  follow(runId: string, options: FollowRunOptions): AsyncIterable<readonly AnyRunEvent[]>
  /** The stored events of one of its runs, with those of its child runs. */
  stored(runId: string): AsyncIterable<AnyRunEvent>
  /** The events of the thread and its runs in one order, from a cursor on; absent if its runs are all there is. */
  events?(options: EventsOptions): AsyncIterable<ChatEvent>
  /** Gives a message to the thread. A message that it has is not delivered again. */
  send(message: NewMessage): Promise<Taken>
  /** Answers items of a waiting run; an answer that was given before is not given again. */
  answer(runId: string, answers: readonly Answer[]): Promise<Taken>
  steer(runId: string, message: Pick<NewMessage, 'messageId' | 'content'>): Promise<void>
  /** Cancels a run in progress; ends one that waits. */
  stop(runId: string): Promise<void>
  /** Continues an interrupted run. */
  recover(runId: string): Promise<Taken>
  /** Changes the conversation; absent if only its runs are known. */
  change?(change: ThreadChange): Promise<void>
  /** Answers a message again, by a new run: the run of that message, or of that id, and all later ones leave the conversation. */
  regenerate(id: string): Promise<Taken>
  /** Continues an earlier run of the conversation, in one of its own; absent if its runs are one line. */
  branch?(runId: string, message: NewMessage): Promise<{ readonly thread: ThreadPort; readonly taken: Taken }>
  /** Messages of people that a run of this process has ended without reading. */
  returned(runId: string): readonly InputMessage[]
  /** The ids of the messages with which a run began. */
  messageIds(runId: string): Promise<readonly string[]>
}

/** Where handlers find conversations: sessions, or a harness with its log. */
export interface BackEnd {
  /** The conversation of that owner; null if there is none. `create`: a missing one is created. */
  thread(threadId: string, access: Access, options?: { readonly create?: boolean }): Promise<ThreadPort | null>
  /** The conversation of a run; null if there is none. */
  threadOf(runId: string): Promise<string | null>
  /** The conversations of that owner, most recently written first; absent if they are not known. */
  list?(access: Access, page: { readonly limit: number; readonly before?: string }): AsyncIterable<ThreadItem>
}

/** A request that is refused: the answer is JSON with the status. */
export class RequestError extends Error {
  readonly status: number
  readonly code: string
  readonly pending: readonly PendingItem[] | undefined
  /** The part of the request that is wrong. */
  readonly param: string | undefined

  constructor(
    status: number,
    code: string,
    {
      message,
      pending,
      param,
    }: { readonly message: string; readonly pending?: readonly PendingItem[]; readonly param?: string },
  ) {
    super(message)
    this.status = status
    this.code = code
    this.pending = pending
    this.param = param
  }
}
