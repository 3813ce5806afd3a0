import { HarnessError } from '../index.js'
import type { Answer, JsonObject } from '../index.js'
import type { Conversation } from './conversation.js'
import { SessionError } from './errors.js'
import type { ChatAnswer } from './grants.js'
import { readBy } from './thread/reduce-chat.js'
import type { ChatRun } from './thread/reduce-chat.js'
import type { NewThreadEvent, QueueItem } from './thread/thread-events.js'
import type { ThreadRun } from './thread/thread-state.js'
import { withPlannedMode } from './tools/submit-plan.js'

export type WhenBusy = 'queue' | 'steer' | 'decline' | 'reject'

/** A message as it is stored. */
export type SentItem = Omit<QueueItem, 'at'>

/** A change of a thread that begins nothing. */
export type ThreadChange = Extract<
  NewThreadEvent,
  { kind: 'setting_changed' | 'title_changed' | 'tags_changed' | 'grant_removed' }
>

export type SentStatus = 'started' | 'queued' | 'steered'

/** What becomes of the queue when a run is cancelled. */
export type CancelQueue = 'hold' | 'drop' | 'continue'

export interface AnswerStatus {
  readonly callId: string
  /** `stale`: nothing waits for it; nothing has changed. */
  readonly status: 'accepted' | 'stale'
}

/** The actions of a conversation's owner. Each is called within `conversation.exclusive`, after `own`. */
export class Actions {
  readonly #conversation: Conversation
  readonly #maxQueued: number

  constructor(conversation: Conversation, maxQueued: number) {
    this.#conversation = conversation
    this.#maxQueued = maxQueued
  }

  /** Throws a `SessionError` for a kind of file that the model is known not to take: that of `run`, or of the message's own. */
  async checkKinds({ content, mode, model }: SentItem, run: ThreadRun | null = null): Promise<void> {
    const { state, starter } = this.#conversation
    const chosen = mode ?? state.mode
    await starter.checkKinds(content, run ?? { mode: chosen, model: model ?? state.models[chosen] ?? null })
  }

  async send(item: SentItem, whenBusy: WhenBusy): Promise<SentStatus> {
    const talk = this.#conversation
    if (talk.isKnown(item.messageId)) return this.#statusOf(item.messageId)
    await this.checkKinds(item)
    const { phase, state } = talk
    if (phase === 'idle') return this.#sendIdle(item)
    if (phase === 'interrupted') {
      await this.#giveToRun(item)
      talk.recover()
      return 'steered'
    }
    if (whenBusy === 'reject') throw new SessionError('busy', `Thread \`${state.threadId}\` is ${phase}.`)
    if (whenBusy === 'steer') return this.steer(item)
    if (phase === 'waiting' && whenBusy === 'decline' && !talk.pending.some(({ kind }) => kind === 'unknown_outcome')) {
      await this.#giveToRun(item)
      await talk.resume(talk.pending.map(declined))
      return 'steered'
    }
    await this.#enqueue(item)
    return 'queued'
  }

  /** Gives the message to the run; an idle thread begins one. */
  async steer(item: SentItem): Promise<SentStatus> {
    const talk = this.#conversation
    if (talk.isKnown(item.messageId)) return this.#statusOf(item.messageId)
    if (talk.phase === 'idle' || talk.phase === 'interrupted') return this.send(item, 'queue')
    await this.checkKinds(item, talk.state.run)
    if (talk.phase === 'cancelling') {
      await this.#enqueue(item)
      return 'queued'
    }
    await this.#giveToRun(item)
    return 'steered'
  }

  /** Begins with the message after an interrupted run has ended: before the queue, which continues after it. */
  async interruptWith(item: SentItem): Promise<SentStatus> {
    const talk = this.#conversation
    if (talk.isKnown(item.messageId)) return this.#statusOf(item.messageId)
    await talk.cancelStored()
    await talk.begin(item, [queued(item), ...this.#releasing()])
    return 'started'
  }

  /** Answers the message of a run again. That run and the later ones leave the conversation; one that waits ends. */
  async regenerate(id: string | null): Promise<{ readonly messageId: string; readonly status: SentStatus }> {
    const talk = this.#conversation
    const { phase, threadId } = { phase: talk.phase, threadId: talk.state.threadId }
    if (phase === 'running' || phase === 'cancelling')
      throw new SessionError('busy', `Thread \`${threadId}\` is ${phase}.`)
    const messageId = talk.snapshot.runs.findLast((run) => id === null || isRunOf(run, id))?.messageIds[0]
    const begun = messageId === undefined ? null : await talk.begunWith(messageId)
    if (messageId === undefined || begun === null)
      throw new SessionError(
        'message_not_found',
        `Thread \`${threadId}\` has no ${id === null ? 'run' : `message \`${id}\``}.`,
      )
    await talk.cancelStored()
    const { runs } = talk.snapshot
    const index = runs.findLastIndex((run) => run.messageIds.includes(messageId))
    if (index === -1) {
      // Its run had stored nothing: the message is in the queue again.
      await this.release()
      return { messageId, status: 'queued' }
    }
    const before = runs[index - 1]
    const history = before === undefined ? begun.origin : { runId: before.runId }
    const runIds = runs.slice(index).map(({ runId }) => runId)
    await talk.begin(begun.item, [queued(begun.item)], { runIds, history })
    return { messageId, status: 'started' }
  }

  /** Settles the items that wait; resolves when the answers are stored. */
  async answer(answers: readonly ChatAnswer[]): Promise<readonly AnswerStatus[]> {
    const talk = this.#conversation
    const waiting = new Set(talk.pending.map(({ callId }) => callId))
    const accepted = talk.phase === 'waiting' ? answers.filter(({ callId }) => waiting.has(callId)) : []
    if (accepted.length > 0) {
      try {
        await this.#resume(accepted)
      } catch (error) {
        if (!(error instanceof HarnessError) || error.code !== 'invalid_state') throw error
        // Another process was first.
        await talk.load()
        accepted.length = 0
      }
    }
    return answers.map((answer) => ({
      callId: answer.callId,
      status: accepted.includes(answer) ? 'accepted' : 'stale',
    }))
  }

  /** Continues the run. Permissions that the answers give are stored, and release other items that wait for them. */
  async #resume(answers: readonly ChatAnswer[]): Promise<void> {
    const talk = this.#conversation
    const describe = (): ReturnType<Conversation['starter']['toolsOf']> => talk.starter.toolsOf(talk.state.run)
    const grants = await talk.grants.of(answers, talk.pending, describe)
    const own = answers.map(({ remember: _, ...answer }): Answer => {
      const item = talk.pending.find(({ callId }) => callId === answer.callId)
      return withPlannedMode(answer, item?.payload)
    })
    if (grants.length === 0) return talk.resume(own)
    const others = talk.pending.filter(({ callId }) => !answers.some((answer) => answer.callId === callId))
    const released = await talk.grants.released(others, grants, describe)
    await talk.grants.during(grants, async () => {
      await talk.resume([...own, ...released])
      const by = answers.find((answer) => answer.by !== undefined)?.by ?? null
      await talk.append(...grants.map((grant): NewThreadEvent => ({ kind: 'grant_added', grant, by })))
    })
  }

  /** Removes messages from the queue; gives them. */
  async remove(messageIds: readonly string[]): Promise<readonly QueueItem[]> {
    const talk = this.#conversation
    const removed = talk.state.queue.filter(({ messageId }) => messageIds.includes(messageId))
    if (removed.length === 0) return removed
    await talk.append(...removed.map(({ messageId }): NewThreadEvent => ({ kind: 'message_removed', messageId })))
    for (const { messageId } of removed) talk.ends.settle(messageId, { status: 'removed', runId: null, text: '' })
    return removed
  }

  /** Deletes the thread with its runs. False if one is in progress, or another process has it still. */
  async deleteThread(): Promise<boolean> {
    const talk = this.#conversation
    if (talk.openRun !== null) return false
    const own = talk.snapshot.runs.map(({ runId }) => runId)
    return talk.removeLogs([...own, ...talk.state.replaced])
  }

  async release(): Promise<void> {
    const talk = this.#conversation
    const released = this.#releasing()
    if (released.length > 0) await talk.append(...released)
    await talk.beginNext()
  }

  async change(event: ThreadChange): Promise<void> {
    if (event.kind === 'title_changed' && event.auto === true && this.#conversation.state.isNamed) return
    await this.#conversation.append(event)
  }

  async #sendIdle(item: SentItem): Promise<SentStatus> {
    const talk = this.#conversation
    if (talk.state.queue.length > 0) {
      await this.#enqueue(item)
      await talk.beginNext()
      return 'queued'
    }
    await talk.begin(item, [queued(item), ...this.#releasing()])
    return 'started'
  }

  async #enqueue(item: SentItem): Promise<void> {
    await this.#checkQueue()
    await this.#conversation.append(queued(item), ...this.#releasing())
  }

  async #giveToRun(item: SentItem): Promise<void> {
    const talk = this.#conversation
    const steers = talk.state.run?.runId
    if (steers === undefined) throw new RangeError('Expected a thread with a run.')
    await talk.append({ ...queued(item), steers })
    const given = talk.state.steering.at(-1)
    if (given !== undefined) talk.openRun?.port.push(given)
  }

  #releasing(): readonly NewThreadEvent[] {
    return this.#conversation.state.held ? [{ kind: 'queue_released' }] : []
  }

  async #checkQueue(): Promise<void> {
    if (this.#conversation.state.queue.length < this.#maxQueued) return
    throw new SessionError('queue_full', `The queue has ${this.#maxQueued} messages: remove one, or wait.`)
  }

  /** Of a message that was sent before. */
  #statusOf(messageId: string): SentStatus {
    const { queue, thread, runs } = this.#conversation.snapshot
    if (queue.some((item) => item.messageId === messageId)) return 'queued'
    const isSteering = thread.steering.some((item) => item.messageId === messageId)
    return isSteering || runs.some((run) => readBy(run).has(messageId)) ? 'steered' : 'started'
  }
}

/** Members are named: to spread an item into the event takes longer than all the rest. */
function queued({
  messageId,
  content,
  by,
  mode,
  model,
  metadata,
}: SentItem): NewThreadEvent & { kind: 'message_queued' } {
  return { kind: 'message_queued', messageId, content, by, mode, model, metadata }
}

/** `id`: of the run, or of a message that it has read. */
function isRunOf(run: ChatRun, id: string): boolean {
  return run.runId === id || run.messageIds.includes(id) || readBy(run).has(id)
}

const DECLINED = 'The person wrote instead.'

function declined({ kind, callId }: { readonly kind: string; readonly callId: string }): Answer {
  if (kind === 'approval') return { callId, approved: false, reason: DECLINED }
  return { callId, declined: true, reason: DECLINED }
}

/** A JSON object of plain data. */
export function jsonOf(value: object): JsonObject {
  return JSON.parse(JSON.stringify(value)) as JsonObject
}

/** The members of posted actions. */
export interface PostedFields {
  readonly action: string
  readonly item: SentItem
  readonly whenBusy: WhenBusy
  readonly answers: readonly ChatAnswer[]
  readonly queue: CancelQueue
  readonly messageIds: readonly string[]
  readonly event: ThreadChange
  readonly runId?: string | null
  readonly id: string | null
}
