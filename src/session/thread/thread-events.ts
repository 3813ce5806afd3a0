import type { ContentPart } from '#contracts/entry.js'
import type { JsonObject } from '#util/json.js'
import type { ModelRef } from '#contracts/model-reference.js'
import type { StoredError } from '../errors.js'
import type { Rule } from '#extensions/policy/rule.js'

/** A permission that a person gave in a conversation. */
export type Grant = Rule & { readonly id: string }

/** A place in the log of a run. */
export interface RunPlace {
  readonly runId: string
  readonly seq: number
}

/** Fields of every event of a thread. */
export interface ThreadEventBase {
  readonly threadId: string
  /** Numbers the events of the thread from 1 without gaps. */
  readonly seq: number
  /** ISO 8601 in UTC with milliseconds. */
  readonly at: string
  readonly durable: true
  /** The event of the thread's run after which this one comes; null before its first run. */
  readonly after: RunPlace | null
}

/** A message that waits for its turn. */
export interface QueueItem {
  readonly messageId: string
  readonly content: readonly ContentPart[]
  /** When it was sent: ISO 8601 in UTC. */
  readonly at: string
  /** Its author, as the host names it; null if unknown. */
  readonly by: string | null
  /** The mode that it asks for; null: that of the thread. */
  readonly mode: string | null
  /** The model that it asks for; null: that of the mode. */
  readonly model: ModelRef | null
  /** Becomes the metadata of its run. */
  readonly metadata: JsonObject
  /** Why no run could read it: its sender was told, and it is not sent again before the queue is released. */
  readonly error?: StoredError | undefined
}

/** A message before it is stored. */
export type ThreadMessage = Omit<QueueItem, 'at' | 'error'>

/** Runs that leave a conversation. */
export interface ReplacedRuns {
  readonly runIds: readonly string[]
  /** The conversation before the first of them. */
  readonly history: { readonly runId: string; readonly after?: string } | null
}

/** Fields of each kind, in addition to those of every event. They are intentions: endings are in the logs of the runs. */
export interface ThreadPayloads {
  thread_opened: {
    readonly version: 1
    /** The owner; null if it has none. */
    readonly resourceId: string | null
    readonly title: string
    readonly tags: readonly string[]
    readonly metadata: JsonObject
    readonly mode: string
    /** The defaults of the schema of settings; absent: none. */
    readonly settings?: JsonObject
    /** Of a fork: its source, and the conversation that it begins with. */
    readonly fork?: {
      readonly threadId: string
      readonly history: { readonly runId: string; readonly after?: string } | null
    }
  }
  /** A person's message is stored. `steers`: the run in progress that is to read it; absent: it waits in the queue. */
  message_queued: ThreadMessage & { readonly steers?: string }
  /** A message that its run did not read is at the head of the queue. `error`: no run could read it; absent: it can be sent. */
  message_requeued: { readonly messageId: string; readonly error?: StoredError }
  message_removed: { readonly messageId: string }
  /** An extension refused a message, which is not stored. */
  message_refused: { readonly messageId: string; readonly reason: string; readonly by: string | null }
  /** A post of another process is dealt with. `messageId`: the message that it brings; null for any other action. */
  message_taken: { readonly postId: string; readonly messageId: string | null; readonly outcome: JsonObject }
  /** A run begins with these messages. It is begun again, under the same id, if its log has no event. */
  run_begun: {
    readonly runId: string
    readonly messageIds: readonly string[]
    readonly mode: string
    readonly model: ModelRef | null
    /** Of a run that answers a message again: the runs in whose place it is. */
    readonly replaces?: ReplacedRuns
  }
  /** The latest run could not continue. It waits as before, until it can or is cancelled. */
  run_refused: { readonly runId: string; readonly error: StoredError }
  /** From here on the run continues under another mode. */
  mode_handed_over: { readonly runId: string; readonly mode: string }
  /** Exactly one member is set. */
  setting_changed: {
    readonly mode?: string
    /** The model of a mode; null: that of its harness. */
    readonly model?: { readonly mode: string; readonly model: ModelRef | null }
    /** The settings that changed. */
    readonly settings?: JsonObject
    /** With `settings`: they are all that there are. */
    readonly replaces?: boolean
  }
  /** `auto`: it was made for the conversation; absent: a person gave it, and no other replaces it. */
  title_changed: { readonly title: string; readonly auto?: boolean }
  tags_changed: { readonly tags: readonly string[] }
  /** No message of the queue begins a run, until one is sent or the queue is released. `error`: a run could not begin or continue. */
  queue_held: { readonly kind: 'queue_held'; readonly error?: StoredError }
  queue_released: { readonly kind: 'queue_released' }
  grant_added: { readonly grant: Grant; readonly by: string | null }
  grant_removed: { readonly grantId: string; readonly by: string | null }
}

/** An event of a thread, discriminated by `kind`. */
export type ThreadEvent = {
  readonly [Kind in keyof ThreadPayloads]: ThreadEventBase & { readonly kind: Kind } & ThreadPayloads[Kind]
}[keyof ThreadPayloads]

export type ThreadEventOf<Kind extends keyof ThreadPayloads> = Extract<ThreadEvent, { readonly kind: Kind }>

/** An event before the thread numbers it. */
export type NewThreadEvent = {
  readonly [Kind in keyof ThreadPayloads]: { readonly kind: Kind } & ThreadPayloads[Kind]
}[keyof ThreadPayloads]
