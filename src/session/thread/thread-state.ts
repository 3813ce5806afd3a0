import type { JsonObject } from '#util/json.js'
import type { ModelRef } from '#contracts/model-reference.js'
import type { StoredError } from '../errors.js'
import { isHeld, withMessage, withoutMessage, withRequeued } from './queue.js'
import type { MessageQueue } from './queue.js'
import type { Grant, QueueItem, ThreadEvent, ThreadEventOf } from './thread-events.js'

/** The latest run of a thread. */
export interface ThreadRun {
  readonly runId: string
  readonly messageIds: readonly string[]
  readonly mode: string
  readonly model: ModelRef | null
  /** The item that it began with. */
  readonly items: readonly QueueItem[]
}

/** The conversation that the next run continues. */
export interface ThreadHistory {
  readonly runId: string
  readonly after?: string
}

/** A thread as of an event: the fold of its events, plain JSON. */
export interface ThreadState extends MessageQueue {
  readonly threadId: string
  readonly seq: number
  readonly createdAt: string
  readonly updatedAt: string
  readonly resourceId: string | null
  readonly title: string
  /** A person gave the title. */
  readonly isNamed: boolean
  readonly tags: readonly string[]
  readonly metadata: JsonObject
  readonly mode: string
  /** The chosen models, by mode. */
  readonly models: Readonly<Record<string, ModelRef>>
  readonly settings: JsonObject
  readonly run: ThreadRun | null
  /** Why the latest run could not continue, when it was last tried, and the number of its last event then; absent: it was not tried. */
  readonly refused?: (StoredError & { readonly seq: number | undefined }) | undefined
  /** What the latest run continues. */
  readonly history: ThreadHistory | null
  /** Runs that have left the conversation, because a message was answered again. Their logs are kept. */
  readonly replaced: readonly string[]
  /** Permissions that people gave. */
  readonly grants: readonly Grant[]
  /** The start of the first message; empty before it. */
  readonly firstMessage: string
  readonly forkOf: string | null
}

/** The state after `event`. Pure. The first event of a thread is `thread_opened`; `undefined` begins. */
export function applyThread(state: ThreadState | undefined, event: ThreadEvent): ThreadState {
  if (event.kind === 'thread_opened') return openedThread(event)
  if (state === undefined) throw new RangeError(`Expected \`thread_opened\` first, got \`${event.kind}\`.`)
  return { ...state, ...threadChange(state, event), seq: event.seq, updatedAt: event.at }
}

/** A thread that begins. */
export function openedThread(
  event: Omit<ThreadEventOf<'thread_opened'>, 'kind' | 'version' | 'durable' | 'after'>,
): ThreadState {
  return {
    threadId: event.threadId,
    seq: event.seq,
    createdAt: event.at,
    updatedAt: event.at,
    resourceId: event.resourceId,
    title: event.title,
    isNamed: event.title !== '',
    tags: event.tags,
    metadata: event.metadata,
    mode: event.mode,
    models: {},
    settings: Object.freeze(event.settings ?? {}),
    queue: [],
    held: false,
    steering: [],
    run: null,
    history: event.fork?.history ?? null,
    replaced: [],
    grants: [],
    firstMessage: '',
    forkOf: event.fork?.threadId ?? null,
  }
}

function threadChange(
  state: ThreadState,
  event: Exclude<ThreadEvent, { kind: 'thread_opened' }>,
): Partial<ThreadState> {
  switch (event.kind) {
    case 'message_queued': {
      const firstMessage = state.firstMessage === '' ? shortText(event.content) : state.firstMessage
      return { firstMessage, ...withMessage(state, event) }
    }
    case 'message_requeued':
      return withRequeued(state, event)
    case 'message_removed':
      return withoutMessage(state, event.messageId)
    case 'run_begun':
      return beginRun(state, event)
    case 'run_refused':
      return { refused: { ...event.error, seq: event.after?.seq } }
    case 'mode_handed_over':
      return handedOver(state, event)
    case 'setting_changed':
      return settingChanged(state, event)
    case 'title_changed':
      return { title: event.title, isNamed: !event.auto }
    case 'tags_changed':
      return { tags: event.tags }
    case 'queue_held':
      return { held: true }
    case 'queue_released':
      return { held: false }
    case 'grant_added':
      return { grants: [...state.grants.filter(({ id }) => id !== event.grant.id), event.grant] }
    case 'grant_removed':
      return { grants: state.grants.filter(({ id }) => id !== event.grantId) }
    case 'message_refused':
    case 'message_taken':
      return {}
  }
}

function beginRun(state: ThreadState, event: ThreadEventOf<'run_begun'>): Partial<ThreadState> {
  const { runId, messageIds, mode, model, replaces } = event
  const earlier = state.run === null ? state.history : { runId: state.run.runId }
  const items = state.queue.filter((item) => messageIds.includes(item.messageId))
  return {
    refused: undefined,
    queue: state.queue.filter((item) => !messageIds.includes(item.messageId)),
    // The earlier run read the rest: otherwise they would be in the queue again.
    steering: [],
    run: { runId, messageIds, mode, model, items },
    history: replaces === undefined ? earlier : replaces.history,
    replaced: replaces === undefined ? state.replaced : [...state.replaced, ...replaces.runIds],
  }
}

function handedOver(state: ThreadState, { mode }: ThreadEventOf<'mode_handed_over'>): Partial<ThreadState> {
  return { mode, run: state.run && { ...state.run, mode, model: state.models[mode] ?? null } }
}

/** The first line of a message, at most 120 characters. */
function shortText(content: QueueItem['content']): string {
  const text = content.find((part) => part.type === 'text' && part.text.trim() !== '')
  const [line = ''] = text?.type === 'text' ? text.text.trim().split('\n', 1) : []
  return line.length > 120 ? `${line.slice(0, 119)}…` : line
}

function settingChanged(
  state: ThreadState,
  { mode, model, settings, replaces }: ThreadEventOf<'setting_changed'>,
): Partial<ThreadState> {
  if (mode !== undefined) return { mode }
  if (settings !== undefined) return { settings: Object.freeze({ ...(replaces ? {} : state.settings), ...settings }) }
  if (model === undefined) return {}
  const { [model.mode]: _, ...others } = state.models
  return { models: model.model === null ? others : { ...others, [model.mode]: model.model } }
}

/** The members of a thread that lists show and filter by. */
export function threadDigest(state: ThreadState): JsonObject {
  const { resourceId, title, tags, metadata, mode, run, forkOf, firstMessage, queue, refused } = state
  const shown = { resourceId, title, tags: [...tags], metadata, mode, runId: run?.runId ?? null, forkOf, firstMessage }
  return {
    ...shown,
    ...(queue.length > 0 && !isHeld(state) && { continues: true }),
    ...(refused !== undefined && { refused: { ...refused, seq: refused.seq ?? 0 } }),
  }
}
