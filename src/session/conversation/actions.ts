import { HarnessError } from '#contracts/errors.js'
import type { Answer } from '#core/state/answers.js'
import type { ContentPart } from '#contracts/entry.js'
import type { HarnessDescription } from '#harness/launch/describe.js'
import { isObject } from '#util/json.js'
import {
  boolean,
  jsonObject,
  leaf,
  list,
  nullable,
  number,
  object,
  oneOf,
  optional,
  partial,
  string,
  union,
} from '#util/validate.js'
import type { ThreadConversation, ThreadOwner } from './conversation.js'
import { SessionError } from '../errors.js'
import type { StoredError } from '../errors.js'
import type { ChatAnswer } from '../thread/grants.js'
import { toJson } from './message.js'
import type { SentStatus, WhenBusy } from './message.js'
import { eventsOfRelease } from '../thread/next-events.js'
import { readBy } from '../thread/reduce-chat.js'
import type { ChatRun } from '../thread/reduce-chat.js'
import type { Grant, ThreadMessage, NewThreadEvent, QueueItem } from '../thread/thread-events.js'
import { nextMessage } from '../thread/queue.js'
import type { ThreadRun } from '../thread/thread-state.js'
import { storedMessage } from '../thread/transcript.js'
import { withPlannedMode } from '../tools/ask-people.js'

/** A change of a thread that begins nothing. */
export type ChatChange = Extract<
  NewThreadEvent,
  { kind: 'setting_changed' | 'title_changed' | 'tags_changed' | 'grant_added' | 'grant_removed' | 'message_refused' }
>

/** What becomes of the queue when a run is cancelled. */
export type CancelQueue = 'hold' | 'drop' | 'continue'

export interface AnswerStatus {
  readonly callId: string
  /** `stale`: nothing waits for it; nothing has changed. `posted`: the thread's owner, another process, has not taken it yet. */
  readonly status: 'accepted' | 'stale' | 'posted'
}

/** A post that gives messages back: after `until`, in ms since 1970, its sender may have gone, and they stay in the queue. */
interface GivesBack {
  readonly until?: number
}

/**
 * An action on a conversation. Plain JSON: its owner performs it, and other processes post it to the owner. `runId`: of the latest run,
 * as the sender knows it.
 */
export type ChatAction =
  | { readonly kind: 'send'; readonly item: ThreadMessage; readonly whenBusy: WhenBusy }
  | { readonly kind: 'steer'; readonly item: ThreadMessage }
  | { readonly kind: 'interrupt'; readonly item: ThreadMessage; readonly runId: string | null }
  | { readonly kind: 'regenerate'; readonly id: string | null; readonly runId: string | null }
  | { readonly kind: 'answer'; readonly answers: readonly ChatAnswer[] }
  | (GivesBack & {
      readonly kind: 'cancel'
      readonly queue: CancelQueue
      readonly runId: string | null
      /** Messages of the sender that had no end when it cancelled: it cancels their run as well. */
      readonly messageIds?: readonly string[]
    })
  | (GivesBack & { readonly kind: 'remove'; readonly messageIds: readonly string[] })
  | { readonly kind: 'withdraw'; readonly messageId: string }
  | { readonly kind: 'release' }
  | { readonly kind: 'change'; readonly event: ChatChange }

/** What an action has done: the members that the kind of action has. Plain JSON. */
export interface ActionOutcome {
  readonly messageId?: string
  readonly status?: SentStatus
  readonly answers?: readonly AnswerStatus[]
  /** Messages that were removed from the queue. */
  readonly removed?: readonly QueueItem[]
}

/** The action of this kind, or the change. */
type Of<Union, Kind> = Extract<Union, { readonly kind: Kind }>

const TEXT = nullable(string)
const MESSAGE_FIELDS = {
  messageId: string,
  content: list(leaf<ContentPart>('a content part', isObject)),
  by: TEXT,
  mode: TEXT,
  model: TEXT,
  metadata: jsonObject,
}
const NEW_MESSAGE = object<ThreadMessage>(MESSAGE_FIELDS)
const CHANGE = union<ChatChange, 'kind'>('kind', {
  setting_changed: object({
    kind: oneOf('setting_changed'),
    mode: optional(string),
    model: optional(object({ mode: string, model: TEXT })),
    settings: optional(jsonObject),
    replaces: optional(boolean),
  }),
  title_changed: object({
    kind: oneOf('title_changed'),
    title: string,
    auto: optional(boolean),
  }),
  tags_changed: object({ kind: oneOf('tags_changed'), tags: list(string) }),
  grant_added: object({ kind: oneOf('grant_added'), grant: leaf<Grant>('a grant', isObject), by: TEXT }),
  grant_removed: object({ kind: oneOf('grant_removed'), grantId: string, by: TEXT }),
  message_refused: object({ kind: oneOf('message_refused'), messageId: string, reason: string, by: TEXT }),
})
export const ACTION = union<ChatAction, 'kind'>('kind', {
  send: object({
    kind: oneOf('send'),
    item: NEW_MESSAGE,
    whenBusy: oneOf('queue', 'steer', 'decline', 'reject'),
  }),
  steer: object({ kind: oneOf('steer'), item: NEW_MESSAGE }),
  interrupt: object({ kind: oneOf('interrupt'), item: NEW_MESSAGE, runId: TEXT }),
  regenerate: object({ kind: oneOf('regenerate'), id: TEXT, runId: TEXT }),
  answer: object({
    kind: oneOf('answer'),
    answers: list(leaf<ChatAnswer>('an answer', isObject)),
  }),
  cancel: object({
    kind: oneOf('cancel'),
    queue: oneOf('hold', 'drop', 'continue'),
    runId: TEXT,
    messageIds: optional(list(string)),
    until: optional(number()),
  }),
  remove: object({ kind: oneOf('remove'), messageIds: list(string), until: optional(number()) }),
  withdraw: object({ kind: oneOf('withdraw'), messageId: string }),
  release: object({ kind: oneOf('release') }),
  change: object({ kind: oneOf('change'), event: CHANGE }),
})
export const OUTCOME = partial<ActionOutcome>({
  messageId: string,
  status: oneOf('started', 'queued', 'steered'),
  answers: list(object({ callId: string, status: oneOf('accepted', 'stale', 'posted') })),
  removed: list(object({ ...MESSAGE_FIELDS, at: string, error: optional(leaf<StoredError>('an error', isObject)) })),
})

/** Performs an action as the owner of the thread. `postId`: of the post that brought it. */
export async function performAction(
  owner: ThreadOwner,
  action: ChatAction,
  postId: string | null = null,
): Promise<ActionOutcome> {
  switch (action.kind) {
    case 'send':
      return { status: await sendMessage(owner, action.item, action.whenBusy) }
    case 'steer':
      return { status: await steerRun(owner, action.item) }
    case 'interrupt':
      return { status: await interruptWith(owner, action.item) }
    case 'regenerate':
      return regenerateReply(owner, action.id)
    case 'answer':
      return { answers: await answerPending(owner, action.answers) }
    case 'cancel':
      return { removed: await cancelRun(owner, action, postId) }
    case 'remove':
      return { removed: await removeQueued(owner, action, postId) }
    case 'withdraw':
      await withdrawMessage(owner, action.messageId)
      return {}
    case 'release':
      await releaseQueue(owner)
      return {}
    case 'change':
      await changeThread(owner, action.event)
      return {}
  }
}

/** Throws a `SessionError` for a kind of file that the model is known not to take: that of `run`, or of the message's own. */
export async function checkKinds(
  { state, starter }: ThreadConversation,
  { content, mode, model }: ThreadMessage,
  run: ThreadRun | null = null,
): Promise<void> {
  const chosen = starter.modeOf({ mode }, state)
  await starter.checkKinds(content, run ?? { mode: chosen, model: model ?? state.models[chosen] ?? null })
}

/** Throws a `SessionError` for a message that asks for a model which is not there. */
export async function checkModel(
  { state, starter }: ThreadConversation,
  { mode, model }: Pick<ThreadMessage, 'mode' | 'model'>,
): Promise<void> {
  if (model !== null) await starter.checkModel(model, starter.modeOf({ mode }, state))
}

async function sendMessage(owner: ThreadOwner, message: ThreadMessage, whenBusy: WhenBusy): Promise<SentStatus> {
  const { conversation } = owner
  if (conversation.seen.hasMessage(message.messageId)) return sentStatus(conversation, message.messageId)
  await checkKinds(conversation, message)
  const { phase, state, pending } = conversation
  if (phase === 'idle') {
    if (nextMessage(state) === undefined) {
      await owner.begin(message, [messageQueued(message), ...releaseEvents(conversation)])
      return 'started'
    }
    await enqueueMessage(owner, message)
    await owner.beginNext()
    return 'queued'
  }
  if (phase === 'interrupted') {
    await giveToRun(owner, message)
    owner.recover().continuedFor = message.messageId
    return 'steered'
  }
  if (whenBusy === 'reject') throw new SessionError('busy', `Thread \`${state.threadId}\` is ${phase}.`)
  if (whenBusy === 'steer') return steerRun(owner, message)
  if (phase === 'waiting' && whenBusy === 'decline' && !pending.some(({ kind }) => kind === 'unknown_outcome')) {
    await giveToRun(owner, message)
    try {
      await owner.resume(conversation.pending.map(declinedAnswer))
    } catch (error) {
      await owner.append({ kind: 'message_removed', messageId: message.messageId })
      throw error
    }
    return 'steered'
  }
  await enqueueMessage(owner, message)
  return 'queued'
}

/** Gives the message to the run; an idle thread begins one. */
async function steerRun(owner: ThreadOwner, message: ThreadMessage): Promise<SentStatus> {
  const { conversation } = owner
  if (conversation.seen.hasMessage(message.messageId)) return sentStatus(conversation, message.messageId)
  if (!isBusy(conversation)) return sendMessage(owner, message, 'queue')
  await checkKinds(conversation, message, conversation.state.run)
  // The run may have ended since then.
  if (!isBusy(conversation)) return sendMessage(owner, message, 'queue')
  if (conversation.phase === 'cancelling') {
    await enqueueMessage(owner, message)
    return 'queued'
  }
  await giveToRun(owner, message)
  return 'steered'
}

/** A run is in progress, or waits for people. */
function isBusy({ phase }: ThreadConversation): boolean {
  return phase !== 'idle' && phase !== 'interrupted'
}

/** Begins with the message after an interrupted run has ended: before the queue, which continues after it. */
async function interruptWith(owner: ThreadOwner, message: ThreadMessage): Promise<SentStatus> {
  const { conversation } = owner
  if (conversation.seen.hasMessage(message.messageId)) return sentStatus(conversation, message.messageId)
  await owner.cancelStored()
  await owner.begin(message, [messageQueued(message), ...releaseEvents(conversation)])
  return 'started'
}

/** Answers the message of a run again. That run and the later ones leave the conversation; one that waits ends. */
async function regenerateReply(owner: ThreadOwner, id: string | null): Promise<ActionOutcome> {
  const { conversation } = owner
  const { phase, threadId, log, starter, state } = conversation
  if (phase === 'running' || phase === 'cancelling')
    throw new SessionError('busy', `Thread \`${threadId}\` is ${phase}.`)
  const messageId = conversation.snapshot.runs.findLast((run) => id === null || isRunOf(run, id))?.messageIds[0]
  const begun = messageId === undefined ? null : await storedMessage(log, threadId, messageId)
  if (messageId === undefined || begun === null)
    throw new SessionError(
      'message_not_found',
      `Thread \`${threadId}\` has no ${id === null ? 'run' : `message \`${id}\``}.`,
    )
  starter.modeOf(begun.item, state)
  await owner.cancelStored()
  const { runs } = conversation.snapshot
  const index = runs.findLastIndex((run) => run.messageIds.includes(messageId))
  if (index === -1) {
    // Its run had stored nothing: the message is in the queue again.
    await releaseQueue(owner)
    return { messageId, status: 'queued' }
  }
  const before = runs[index - 1]
  const history = before === undefined ? begun.origin : { runId: before.runId }
  const runIds = runs.slice(index).map(({ runId }) => runId)
  await owner.begin(begun.item, [messageQueued(begun.item)], { runIds, history })
  return { messageId, status: 'started' }
}

/** Settles the items that wait; resolves when the answers are stored. */
async function answerPending(owner: ThreadOwner, answers: readonly ChatAnswer[]): Promise<readonly AnswerStatus[]> {
  const { conversation } = owner
  const waiting = new Set(conversation.pending.map(({ callId }) => callId))
  const accepted = conversation.phase === 'waiting' ? answers.filter(({ callId }) => waiting.has(callId)) : []
  if (accepted.length > 0) {
    try {
      await resumeRun(owner, accepted)
    } catch (error) {
      if (!(error instanceof HarnessError) || error.code !== 'invalid_state') throw error
      await conversation.load()
      const still = new Set(conversation.pending.map(({ callId }) => callId))
      if (accepted.some(({ callId }) => still.has(callId))) throw error
      // Another process was first.
      accepted.length = 0
    }
  }
  return answers.map((each) => ({ callId: each.callId, status: accepted.includes(each) ? 'accepted' : 'stale' }))
}

/** Continues the run. Permissions that the answers give are stored, and release other items that wait for them. */
async function resumeRun(owner: ThreadOwner, answers: readonly ChatAnswer[]): Promise<void> {
  const { pending, starter, state, grants: permissions } = owner.conversation
  const describeTools = (): Promise<HarnessDescription['tools']> => starter.toolsOf(state.run)
  const grants = await permissions.of(answers, pending, describeTools)
  const plain = answers.map(({ remember: _, ...each }): Answer => {
    const item = pending.find(({ callId }) => callId === each.callId)
    return withPlannedMode(each, item?.payload)
  })
  if (grants.length === 0) return owner.resume(plain)
  const others = pending.filter(({ callId }) => !answers.some((each) => each.callId === callId))
  const released = await permissions.released(others, grants, describeTools)
  await permissions.during(grants, async () => {
    await owner.resume([...plain, ...released])
    const by = answers.find((each) => each.by !== undefined)?.by ?? null
    await owner.append(...grants.map((grant): NewThreadEvent => ({ kind: 'grant_added', grant, by })))
  })
}

/** Ends the run of the action, unless it is in progress; gives the messages that left the queue. Whatever stays in it is held. */
async function cancelRun(
  owner: ThreadOwner,
  { queue, runId, until }: Of<ChatAction, 'cancel'>,
  postId: string | null,
): Promise<readonly QueueItem[]> {
  const { conversation } = owner
  if (runId !== null && runId === conversation.lastRun?.runId) await owner.cancelStored()
  if (queue === 'continue') {
    await releaseQueue(owner)
    return []
  }
  const messageIds = queue === 'drop' ? conversation.state.queue.map(({ messageId }) => messageId) : []
  const removed = await removeQueued(owner, { messageIds, until }, postId)
  await owner.holdQueue()
  return removed
}

/** Removes messages from the queue; gives them. With the removal, what became of the post is stored: its sender has both or none. */
async function removeQueued(
  owner: ThreadOwner,
  {
    messageIds,
    until = Infinity,
  }: Pick<Of<ChatAction, 'remove'>, 'messageIds'> & { readonly until?: number | undefined },
  postId: string | null,
): Promise<readonly QueueItem[]> {
  const { state, ends } = owner.conversation
  const removed = Date.now() > until ? [] : state.queue.filter(({ messageId }) => messageIds.includes(messageId))
  if (removed.length === 0) return removed
  const events = removed.map(({ messageId }): NewThreadEvent => ({ kind: 'message_removed', messageId }))
  const outcome = toJson({ removed })
  const taken = postId === null ? [] : [{ kind: 'message_taken', postId, messageId: null, outcome } as const]
  await owner.append(...events, ...taken)
  for (const { messageId } of removed) ends.settle(messageId, { status: 'removed', runId: null, text: '' })
  return removed
}

/** Its sender does not want a message any more: it leaves the queue, or the run that reads it ends. */
async function withdrawMessage(owner: ThreadOwner, messageId: string): Promise<void> {
  const { conversation, openRun } = owner
  const { state, lastRun } = conversation
  const isMessage = (item: QueueItem): boolean => item.messageId === messageId
  if (state.queue.some(isMessage)) {
    await removeQueued(owner, { messageIds: [messageId] }, null)
    return
  }
  const isRead = lastRun !== undefined && isRunOf(lastRun, messageId)
  if (!isRead && state.steering.some(isMessage) && openRun?.port.remove(messageId) !== false) {
    await owner.append({ kind: 'message_removed', messageId })
    conversation.ends.settle(messageId, { status: 'removed', runId: null, text: '' })
  } else if (conversation.phase !== 'idle' && (isRead || state.steering.some(isMessage))) {
    // The end of a run in progress is dealt with after this turn.
    void conversation.cancelOpen(false)
    await owner.cancelStored()
    if (owner.openRun === null) await owner.holdQueue()
  }
}

async function releaseQueue(owner: ThreadOwner): Promise<void> {
  await owner.append(...eventsOfRelease(owner.conversation.latest))
  await owner.beginNext()
}

async function changeThread(owner: ThreadOwner, event: ChatChange): Promise<void> {
  if (event.kind === 'title_changed' && event.auto === true && owner.conversation.state.isNamed) return
  await owner.append(event)
}

async function enqueueMessage(owner: ThreadOwner, message: ThreadMessage): Promise<void> {
  const { conversation, maxQueued } = owner
  if (conversation.state.queue.length >= maxQueued)
    throw new SessionError('queue_full', `The queue has ${maxQueued} messages: remove one, or wait.`)
  await owner.append(messageQueued(message), ...releaseEvents(conversation))
}

async function giveToRun(owner: ThreadOwner, message: ThreadMessage): Promise<void> {
  const { conversation } = owner
  const steers = conversation.state.run?.runId
  if (steers === undefined) throw new RangeError('Expected a thread with a run.')
  await owner.append({ ...messageQueued(message), steers })
  const stored = conversation.state.steering.at(-1)
  if (stored !== undefined) owner.openRun?.port.push(stored)
}

function releaseEvents({ state }: ThreadConversation): readonly NewThreadEvent[] {
  return state.held ? [{ kind: 'queue_released' }] : []
}

/** Of a message that was sent before. */
function sentStatus({ snapshot: { queue, thread, runs } }: ThreadConversation, messageId: string): SentStatus {
  if (queue.some((each) => each.messageId === messageId)) return 'queued'
  const isSteering = thread.steering.some((each) => each.messageId === messageId)
  return isSteering || runs.some((run) => readBy(run).has(messageId)) ? 'steered' : 'started'
}

/** A message that was stored before may have further members. */
function messageQueued(message: ThreadMessage): Of<NewThreadEvent, 'message_queued'> {
  const { messageId, content, by, mode, model, metadata } = message
  return { kind: 'message_queued', messageId, content, by, mode, model, metadata }
}

/** `id`: of the run, or of a message that it has read. */
function isRunOf(run: ChatRun, id: string): boolean {
  return run.runId === id || run.messageIds.includes(id) || readBy(run).has(id)
}

const DECLINED = 'The person wrote instead.'

function declinedAnswer({ kind, callId }: { readonly kind: string; readonly callId: string }): Answer {
  if (kind === 'approval') return { callId, approved: false, reason: DECLINED }
  return { callId, declined: true, reason: DECLINED }
}
