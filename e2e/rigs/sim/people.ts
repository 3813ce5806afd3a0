import type { PendingItem } from 'thinharness'
import { SessionError } from 'thinharness/session'
import type { Chat, ChatAnswer, Sent } from 'thinharness/session'
import { between, oneOf } from '../crash/random.js'
import type { Random } from '../crash/random.js'

/** What became of a message, as far as its senders know. */
export interface MessageFate {
  readonly threadId: string
  /** `send` or `steer` resolved. */
  isStored: boolean
  /** Calls whose outcome is unknown: the store failed, or the process died before the answer. */
  unknown: number
}

/** The messages and answers of all people of a life. */
export class People {
  readonly messages = new Map<string, MessageFate>()
  /** Messages that were given back. */
  readonly returned = new Set<string>()
  /** By the key of a call: how often somebody wanted it to run again. */
  readonly runAgain = new Map<string, number>()
  /** Sent messages with their ends that are still expected. */
  readonly open = new Map<Sent, { readonly processNumber: number }>()
  /** By the key of a call: what somebody answered to its approval, as the conversation confirmed it. */
  readonly approvals = new Map<string, boolean>()
  /** Nobody answers until the end of the life. */
  areSilent = false
  /** Answers that were given, with their items: somebody may give them again. */
  readonly given: { readonly threadId: string; readonly item: PendingItem; readonly answer: ChatAnswer }[] = []
  readonly problems: string[] = []
  readonly #random: Random
  readonly #trace: (line: string) => void

  constructor(random: Random, trace: (line: string) => void) {
    this.#random = random
    this.#trace = trace
  }

  /** A new message, or now and then one that was sent before. */
  newId(threadId: string): string {
    const known = [...this.messages].filter(([, fate]) => fate.threadId === threadId).map(([messageId]) => messageId)
    if (known.length > 0 && this.#random() < 0.08) return known[between(this.#random, 0, known.length - 1)] ?? 'm1'
    const messageId = `m${this.messages.size + 1}`
    this.messages.set(messageId, { threadId, isStored: false, unknown: 0 })
    return messageId
  }

  async sending(messageId: string, processNumber: number, work: Promise<Sent>): Promise<void> {
    const fate = this.messages.get(messageId)
    if (fate === undefined) throw new RangeError(`Expected a message of this life, got ${messageId}.`)
    fate.unknown += 1
    try {
      const sent = await work
      fate.isStored = true
      this.#trace(`${messageId} ${sent.status}`)
      this.expect(sent, processNumber)
    } catch (error) {
      this.#trace(`${messageId}: ${String(error)}`)
      if (error instanceof SessionError) fate.unknown -= 1
    }
  }

  /** The end of a message is expected. */
  expect(sent: Sent, processNumber: number): void {
    const { messageId } = sent
    this.open.set(sent, { processNumber })
    void sent.done.then(
      ({ status, error }) => {
        this.#trace(`${messageId} ${status} ${error?.message ?? ''}`)
        this.open.delete(sent)
      },
      (error: unknown) => this.problems.push(`\`done\` of ${messageId} rejected: ${String(error)}`),
    )
  }

  /** Answers items of a thread, one answer for each of `items`. */
  async answering(chat: Chat, items: readonly PendingItem[], answers: readonly ChatAnswer[]): Promise<void> {
    for (const [index, item] of items.entries()) {
      const answer = answers[index]
      if (answer !== undefined) this.given.push({ threadId: chat.threadId, item, answer })
    }
    const statuses = await chat.answer(answers, { by: oneOf(this.#random, ['ann', 'ben']) })
    for (const [index, { callId, status }] of statuses.entries()) {
      const [item, answer] = [items[index], answers[index]]
      this.#trace(`answer to ${callId}: ${status}`)
      if (item?.kind === 'approval' && answer !== undefined && 'approved' in answer && status === 'accepted')
        this.approve(keyOf(item), answer.approved)
    }
  }

  /** The conversation has confirmed an answer to the approval of a call. */
  approve(key: string, isApproved: boolean): void {
    const earlier = this.approvals.get(key)
    if (earlier !== undefined)
      this.problems.push(`The approval of ${key} was answered twice: ${earlier}, ${isApproved}.`)
    this.approvals.set(key, isApproved)
  }

  /** An answer to an item: mostly one that fits. */
  answerTo(item: PendingItem): ChatAnswer {
    const random = this.#random
    const { kind, callId } = item
    if (kind === 'approval') {
      const approved = random() < 0.6
      return { callId, approved, ...(approved && random() < 0.05 && { remember: 'tool' }) }
    }
    if (kind === 'question') {
      if (random() < 0.2) return { callId, declined: true, reason: 'No idea.' }
      return { callId, answer: random() < 0.2 ? 'many' : 3 }
    }
    const verdict = oneOf(random, ['happened', 'did_not_happen', 'run_again'])
    const key = keyOf(item)
    if (verdict === 'run_again') this.runAgain.set(key, (this.runAgain.get(key) ?? 0) + 1)
    return { callId, answer: verdict === 'happened' ? { outcome: verdict, result: 'it did' } : { outcome: verdict } }
  }
}

/** The key of the effect of a call that waits. */
export function keyOf({ callId, path }: Pick<PendingItem, 'callId' | 'path'>): string {
  return `${String(path.at(-1))}:${String(callId.split('/').at(-1))}`
}
