import type { Answer, PendingItem } from 'thinharness'
import { SessionError } from 'thinharness/session'
import type { Chat, Sent } from 'thinharness/session'
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
      this.open.set(sent, { processNumber })
      void sent.done.then(
        ({ status, error }) => {
          this.#trace(`${messageId} ${status} ${error?.message ?? ''}`)
          this.open.delete(sent)
        },
        (error: unknown) => this.problems.push(`\`done\` of ${messageId} rejected: ${String(error)}`),
      )
    } catch (error) {
      this.#trace(`${messageId}: ${String(error)}`)
      if (error instanceof SessionError) fate.unknown -= 1
    }
  }

  /** An answer to an item: mostly one that fits. */
  answerTo({ kind, callId, path }: PendingItem): Answer {
    const random = this.#random
    if (kind === 'approval') return { callId, approved: random() < 0.6 }
    if (kind === 'question') {
      if (random() < 0.2) return { callId, declined: true, reason: 'No idea.' }
      return { callId, answer: random() < 0.2 ? 'many' : 3 }
    }
    const verdict = oneOf(random, ['happened', 'did_not_happen', 'run_again'])
    const key = `${String(path.at(-1))}:${String(callId.split('/').at(-1))}`
    if (verdict === 'run_again') this.runAgain.set(key, (this.runAgain.get(key) ?? 0) + 1)
    return { callId, answer: verdict === 'happened' ? { outcome: verdict, result: 'it did' } : { outcome: verdict } }
  }
}

const WHEN_BUSY = ['queue', 'queue', 'steer', 'decline', 'reject'] as const
const QUEUES = ['hold', 'drop', 'continue'] as const

/** One action of a person on a thread. */
export type Act = (chat: Chat, people: People, means: { random: Random; processNumber: number }) => Promise<unknown>

const send: Act = (chat, people, { random, processNumber }) => {
  const messageId = people.newId(chat.threadId)
  const options = {
    messageId,
    whenBusy: oneOf(random, WHEN_BUSY),
    ...(random() < 0.15 && { mode: oneOf(random, ['plan', 'build']) }),
    ...(random() < 0.05 && { model: oneOf(random, ['sim:other', 'sim:none']) }),
  }
  return people.sending(messageId, processNumber, chat.send(messageId, options))
}

const steer: Act = (chat, people, { random, processNumber }) => {
  const messageId = people.newId(chat.threadId)
  const interrupt = random() < 0.35
  return people.sending(messageId, processNumber, chat.steer(messageId, { messageId, interrupt }))
}

const withdrawn: Act = (chat, people, { random, processNumber }) => {
  const messageId = people.newId(chat.threadId)
  const abort = new AbortController()
  setTimeout(() => abort.abort(), between(random, 0, 300))
  return people.sending(messageId, processNumber, chat.send(messageId, { messageId, signal: abort.signal }))
}

const cancel: Act = async (chat, people, { random }) => {
  for (const { messageId } of await chat.cancel({ queue: oneOf(random, QUEUES) })) people.returned.add(messageId)
}

/** All items, one of them, in any order, some twice, one that does not exist. */
const answer: Act = (chat, people, { random }) => {
  const items = chat.pending.filter(() => random() < 0.7)
  const answers = items.map((item) => people.answerTo(item))
  if (random() < 0.2) answers.reverse()
  if (random() < 0.1) answers.push({ callId: 'call_of_nobody', approved: true })
  return answers.length === 0 ? Promise.resolve() : chat.answer(answers, { by: 'ann' })
}

const remove: Act = async (chat, people, { random }) => {
  const list = chat.queue.list()
  const item = list[between(random, 0, Math.max(0, list.length - 1))]
  const removed = random() < 0.3 ? await chat.queue.clear() : [await chat.queue.remove(item?.messageId ?? 'none')]
  for (const each of removed) if (each !== undefined) people.returned.add(each.messageId)
}

export const ACTS: readonly (readonly [number, Act])[] = [
  [30, send],
  [14, steer],
  [4, withdrawn],
  [9, cancel],
  [22, answer],
  [4, remove],
  [5, (chat) => chat.queue.release()],
  [3, (chat, _people, { random }) => chat.setMode(oneOf(random, ['plan', 'build']))],
  [2, (chat, _people, { random }) => chat.setModel(oneOf(random, ['sim:other', 'sim:none', null]), { mode: 'plan' })],
  [2, (chat, _people, { random }) => chat.set({ theme: random() < 0.5 ? 'dark' : 'light' })],
  [1, (chat, _people, { random }) => chat.rename(`Title ${between(random, 1, 9)}`)],
  [1, (chat) => chat.tag({ add: ['a'], remove: ['b'] })],
]

/** One of a list with weights. */
export function weighted<Item>(random: Random, list: readonly (readonly [number, Item])[]): Item {
  const total = list.reduce((sum, [weight]) => sum + weight, 0)
  let left = random() * total
  for (const [weight, item] of list) {
    left -= weight
    if (left < 0) return item
  }
  throw new RangeError('Expected a list with weights.')
}
