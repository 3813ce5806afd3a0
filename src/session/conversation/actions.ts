import { HarnessError } from '#contracts/errors.js'
import type { Answer } from '#core/state/answers.js'
import type { ContentPart } from '#contracts/entry.js'
import type { HarnessDescription } from '#harness/launch/describe.js'
import type { JsonObject } from '#util/json.js'
import type { Post } from '#core/log/log.js'
import { isObject } from '#util/json.js'
import {
  boolean,
  jsonObject,
  leaf,
  list,
  nullable,
  object,
  oneOf,
  optional,
  parseAs,
  partial,
  string,
  union,
} from '#util/shape.js'
import type { ThreadConversation, ThreadOwner } from './conversation.js'
import { SessionError } from '../errors.js'
import type { SessionErrorCode } from '../errors.js'
import type { ChatAnswer } from '../thread/grants.js'
import { toJson, newId } from './message.js'
import type { SentStatus, WhenBusy } from './message.js'
import { readBy } from '../thread/reduce-chat.js'
import type { ChatRun } from '../thread/reduce-chat.js'
import type { ThreadMessage, NewThreadEvent, QueueItem } from '../thread/thread-events.js'
import type { ThreadRun } from '../thread/thread-state.js'
import { storedMessage } from '../thread/transcript.js'
import { withPlannedMode } from '../tools/ask-people.js'

/** A change of a thread that begins nothing. */
export type ChatChange = Extract<
  NewThreadEvent,
  { kind: 'setting_changed' | 'title_changed' | 'tags_changed' | 'grant_removed' }
>

/** What becomes of the queue when a run is cancelled. */
export type CancelQueue = 'hold' | 'drop' | 'continue'

export interface AnswerStatus {
  readonly callId: string
  /** `stale`: nothing waits for it; nothing has changed. */
  readonly status: 'accepted' | 'stale'
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
  | { readonly kind: 'cancel'; readonly queue: CancelQueue; readonly runId: string | null }
  | { readonly kind: 'remove'; readonly messageIds: readonly string[] }
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
  }),
  title_changed: object({
    kind: oneOf('title_changed'),
    title: string,
    auto: optional(boolean),
  }),
  tags_changed: object({ kind: oneOf('tags_changed'), tags: list(string) }),
  grant_removed: object({ kind: oneOf('grant_removed'), grantId: string, by: TEXT }),
})
const ACTION = union<ChatAction, 'kind'>('kind', {
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
  }),
  remove: object({ kind: oneOf('remove'), messageIds: list(string) }),
  release: object({ kind: oneOf('release') }),
  change: object({ kind: oneOf('change'), event: CHANGE }),
})
const OUTCOME = partial<ActionOutcome>({
  messageId: string,
  status: oneOf('started', 'queued', 'steered'),
  answers: list(object({ callId: string, status: oneOf('accepted', 'stale') })),
  removed: list(object({ ...MESSAGE_FIELDS, at: string })),
})

/** Performs an action as the owner of the thread. */
export async function performAction(owner: ThreadOwner, action: ChatAction): Promise<ActionOutcome> {
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
      return { removed: await cancelRun(owner, action) }
    case 'remove':
      return { removed: await removeQueued(owner, action.messageIds) }
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
  const chosen = mode ?? state.mode
  await starter.checkKinds(content, run ?? { mode: chosen, model: model ?? state.models[chosen] ?? null })
}

async function sendMessage(owner: ThreadOwner, message: ThreadMessage, whenBusy: WhenBusy): Promise<SentStatus> {
  const { conversation } = owner
  if (conversation.isKnown(message.messageId)) return sentStatus(conversation, message.messageId)
  await checkKinds(conversation, message)
  const { phase, state, pending } = conversation
  if (phase === 'idle') {
    if (state.queue.length === 0) {
      await owner.begin(message, [messageQueued(message), ...releaseEvents(conversation)])
      return 'started'
    }
    await enqueueMessage(owner, message)
    await owner.beginNext()
    return 'queued'
  }
  if (phase === 'interrupted') {
    await giveToRun(owner, message)
    owner.recover()
    return 'steered'
  }
  if (whenBusy === 'reject') throw new SessionError('busy', `Thread \`${state.threadId}\` is ${phase}.`)
  if (whenBusy === 'steer') return steerRun(owner, message)
  if (phase === 'waiting' && whenBusy === 'decline' && !pending.some(({ kind }) => kind === 'unknown_outcome')) {
    await giveToRun(owner, message)
    await owner.resume(conversation.pending.map(declinedAnswer))
    return 'steered'
  }
  await enqueueMessage(owner, message)
  return 'queued'
}

/** Gives the message to the run; an idle thread begins one. */
async function steerRun(owner: ThreadOwner, message: ThreadMessage): Promise<SentStatus> {
  const { conversation } = owner
  if (conversation.isKnown(message.messageId)) return sentStatus(conversation, message.messageId)
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
  if (conversation.isKnown(message.messageId)) return sentStatus(conversation, message.messageId)
  await owner.cancelStored()
  await owner.begin(message, [messageQueued(message), ...releaseEvents(conversation)])
  return 'started'
}

/** Answers the message of a run again. That run and the later ones leave the conversation; one that waits ends. */
async function regenerateReply(owner: ThreadOwner, id: string | null): Promise<ActionOutcome> {
  const { conversation } = owner
  const { phase, threadId, log } = conversation
  if (phase === 'running' || phase === 'cancelling')
    throw new SessionError('busy', `Thread \`${threadId}\` is ${phase}.`)
  const messageId = conversation.snapshot.runs.findLast((run) => id === null || isRunOf(run, id))?.messageIds[0]
  const begun = messageId === undefined ? null : await storedMessage(log, threadId, messageId)
  if (messageId === undefined || begun === null)
    throw new SessionError(
      'message_not_found',
      `Thread \`${threadId}\` has no ${id === null ? 'run' : `message \`${id}\``}.`,
    )
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
      // Another process was first.
      await conversation.load()
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

/** Ends the run of the action, unless it is in progress; gives the messages that left the queue. */
async function cancelRun(
  owner: ThreadOwner,
  { queue, runId }: Of<ChatAction, 'cancel'>,
): Promise<readonly QueueItem[]> {
  const { conversation } = owner
  if (runId !== null && runId === conversation.lastRun?.runId) await owner.cancelStored()
  const waiting = queue === 'drop' ? conversation.state.queue : []
  const removed = await removeQueued(
    owner,
    waiting.map(({ messageId }) => messageId),
  )
  if (queue === 'continue') await releaseQueue(owner)
  return removed
}

/** Removes messages from the queue; gives them. */
async function removeQueued(owner: ThreadOwner, messageIds: readonly string[]): Promise<readonly QueueItem[]> {
  const { state, ends } = owner.conversation
  const removed = state.queue.filter(({ messageId }) => messageIds.includes(messageId))
  await owner.append(...removed.map(({ messageId }): NewThreadEvent => ({ kind: 'message_removed', messageId })))
  for (const { messageId } of removed) ends.settle(messageId, { status: 'removed', runId: null, text: '' })
  return removed
}

async function releaseQueue(owner: ThreadOwner): Promise<void> {
  await owner.append(...releaseEvents(owner.conversation))
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

/** How often the owner looks for posts, and how long their sender waits for it, in ms. */
const LOOK_MS = 200
const WAIT_MS = 10_000

/** What a post office needs of the chat whose thread it serves. */
interface PostOfficeDeps {
  readonly conversation: ThreadConversation
  /** Follows the thread. */
  readonly attach: () => Promise<void>
  /** Performs an action that another process has posted. */
  readonly performPosted: (action: ChatAction) => Promise<ActionOutcome>
}

/** The inbox of a thread: its owner takes the actions of other processes from it. */
export class PostOffice {
  readonly #deps: PostOfficeDeps
  #timer: NodeJS.Timeout | undefined
  /** Posts of others that this process has taken, as the owner, and not dealt with. */
  #taken: Post[] = []
  #isLooking = false

  constructor(deps: PostOfficeDeps) {
    this.#deps = deps
  }

  /** Looks for posts for as long as this process owns the thread. */
  watch(): void {
    if (this.#timer !== undefined) return
    this.#timer = setInterval(() => void this.#look().catch(() => undefined), LOOK_MS).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    // The next owner takes them.
    this.#taken = []
  }

  /** Posts an action, and waits for its outcome; null if the owner has not taken it in time. Rejects as the owner refused. */
  async post(action: ChatAction): Promise<ActionOutcome | null> {
    const { conversation, attach } = this.#deps
    const { feed, log, threadId, posted } = conversation
    const id = newId('post')
    // Noted first: the thread is followed until the post is dealt with, also if its owner gives it back meanwhile.
    posted.add(id)
    let stopWatching = (): void => undefined
    try {
      await attach()
      const taken = new Promise<JsonObject | null>((resolve) => {
        const timer = setTimeout(() => resolve(null), WAIT_MS)
        const stopListening = feed.listen((event) => {
          if (event.kind === 'message_taken' && event.postId === id) resolve(event.outcome)
        })
        stopWatching = () => {
          clearTimeout(timer)
          stopListening()
        }
      })
      await log.post({ kind: 'thread', id: threadId }, { id, body: toJson(action) })
      return postedOutcome(await taken)
    } catch (error) {
      posted.delete(id)
      throw error
    } finally {
      stopWatching()
    }
  }

  async #look(): Promise<void> {
    const { conversation } = this.#deps
    if (!conversation.isOwner) {
      this.stop()
      return
    }
    if (this.#isLooking) return
    this.#isLooking = true
    try {
      const posts = await conversation.takePosts()
      this.#taken.push(...posts.filter(({ id }) => !this.#taken.some((taken) => taken.id === id)))
      let isDropped = false
      while (this.#taken[0] !== undefined) {
        isDropped = await this.#deal(this.#taken[0])
        this.#taken.shift()
      }
      // The sender of the last may be about to delete the thread.
      if (isDropped) await conversation.rest()
    } finally {
      this.#isLooking = false
    }
  }

  /**
   * True if nothing is left to do in the thread. Rejects if the store failed, or the thread has another owner: then the post is dealt
   * with later, or by that owner.
   */
  async #deal({ id, body }: Post): Promise<boolean> {
    const { conversation, performPosted } = this.#deps
    const action = parseAs(ACTION, body, 'the posted action')
    const value = action.ok ? action.value : null
    // An outcome that could not be stored, as it seemed, may be in the log.
    await conversation.exclusive(() => Promise.resolve())
    if (conversation.outcomeOf(id) === undefined) {
      const work = action.ok ? performPosted(action.value) : Promise.reject(invalidAction(action.problem))
      const outcome = await work.then(toJson, refusedPost)
      const messageId = value !== null && 'item' in value ? value.item.messageId : null
      const stored = await conversation.exclusive(async (owner) => {
        // An append that failed may have been stored.
        if (conversation.outcomeOf(id) === undefined)
          await owner.append({ kind: 'message_taken', postId: id, messageId, outcome })
        return true
      })
      if (stored === null) throw new HarnessError('run_owned', 'The thread has another owner.')
    }
    return value?.kind === 'cancel' && value.queue === 'drop'
  }
}

/** The outcome of a post, for its sender. Throws what the owner refused. */
function postedOutcome(taken: JsonObject | null): ActionOutcome | null {
  if (taken === null) return null
  const { error, message } = taken
  if (typeof error === 'string' && typeof message === 'string')
    throw new SessionError(error as SessionErrorCode, message)
  const outcome = parseAs(OUTCOME, taken, 'the outcome of the post')
  if (!outcome.ok) throw invalidAction(outcome.problem)
  return outcome.value
}

/** The caller's mistakes, for the sender. Other errors are thrown. */
function refusedPost(error: unknown): JsonObject {
  if (error instanceof SessionError && error.code !== 'closed') return { error: error.code, message: error.message }
  if (error instanceof HarnessError && error.code === 'invalid_answer')
    return { error: error.code, message: error.message }
  throw error
}

function invalidAction(problem: string): SessionError {
  return new SessionError('invalid_options', problem)
}
