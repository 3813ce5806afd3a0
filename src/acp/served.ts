import type { LogStore } from '../index.js'
import type { Chat, CreateOptions, ListThreadsOptions, Sessions, ThreadItem } from '../session/index.js'

/** The part of a conversation that an agent for editors calls. */
export type ServedChat = Pick<
  Chat,
  | 'threadId'
  | 'snapshot'
  | 'phase'
  | 'pending'
  | 'isFollowed'
  | 'provide'
  | 'send'
  | 'steer'
  | 'answer'
  | 'cancel'
  | 'recover'
  | 'release'
  | 'events'
  | 'queue'
  | 'setMode'
  | 'setModel'
>

/** The threads of one owner, or of all. */
export interface ServedThreads {
  create(options: CreateOptions): Promise<ServedChat>
  open(threadId: string): Promise<ServedChat>
  list(options: ListThreadsOptions): AsyncIterable<ThreadItem>
}

/** The part of sessions that an agent for editors calls. */
export interface ServedSessions extends ServedThreads, Pick<Sessions, 'describe' | 'capabilities'> {
  readonly log: LogStore
  readonly modes: readonly string[]
  for(owner: { readonly resourceId: string }): ServedThreads
}
