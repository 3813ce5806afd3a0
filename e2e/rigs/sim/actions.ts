import type { Chat } from 'thinharness/session'
import { between, oneOf } from '../crash/random.js'
import type { Random } from '../crash/random.js'
import type { People } from './people.js'

const WHEN_BUSY = ['queue', 'queue', 'steer', 'decline', 'reject'] as const
const QUEUES = ['hold', 'drop', 'continue'] as const

/** One action of a person on a thread. */
export type Act = (chat: Chat, people: People, means: ActMeans) => Promise<unknown>

export interface ActMeans {
  readonly random: Random
  readonly processNumber: number
  readonly sleep: (ms: number) => Promise<void>
}

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

const withdrawn: Act = (chat, people, { random, processNumber, sleep }) => {
  const messageId = people.newId(chat.threadId)
  const abort = new AbortController()
  void sleep(between(random, 0, 300)).then(() => abort.abort())
  return people.sending(messageId, processNumber, chat.send(messageId, { messageId, signal: abort.signal }))
}

const cancel: Act = async (chat, people, { random }) => {
  for (const { messageId } of await chat.cancel({ queue: oneOf(random, QUEUES) })) people.returned.add(messageId)
}

/** All items, one of them, in any order, or one that does not exist; one of them twice; two people at once. */
const answer: Act = async (chat, people, { random }) => {
  if (people.areSilent) return
  const items = chat.pending.filter(() => random() < 0.7)
  const answers = items.map((item) => people.answerTo(item))
  if (random() < 0.2) {
    answers.reverse()
    items.reverse()
  }
  const [item] = items
  if (item !== undefined && random() < 0.05) {
    items.push(item)
    answers.push(people.answerTo(item))
  }
  if (random() < 0.1) answers.push({ callId: 'call_of_nobody', approved: true })
  if (answers.length === 0) return
  const both = [people.answering(chat, items, answers)]
  if (random() < 0.15)
    both.push(
      people.answering(
        chat,
        items,
        items.map((each) => people.answerTo(each)),
      ),
    )
  await settledAll(both)
}

/** Somebody answers what waited a while ago, whatever has become of it. */
const answerLate: Act = async (chat, people, { random, sleep }) => {
  if (people.areSilent) return
  const items = [...chat.pending]
  await sleep(between(random, 1_000, 600_000))
  if (items.length > 0)
    await people.answering(
      chat,
      items,
      items.map((each) => people.answerTo(each)),
    )
}

/** An earlier answer again, or the opposite. */
const answerAgain: Act = async (chat, people, { random }) => {
  const known = people.given.filter(({ threadId }) => threadId === chat.threadId)
  const again = known[between(random, 0, Math.max(0, known.length - 1))]
  if (again === undefined) return
  const { item } = again
  await people.answering(chat, [item], [random() < 0.5 ? again.answer : people.answerTo(item)])
}

/** Rejects as the first that rejects, when all have settled. */
async function settledAll(all: readonly Promise<unknown>[]): Promise<void> {
  await Promise.allSettled(all)
  await Promise.all(all)
}

const regenerate: Act = async (chat, people, { random, processNumber }) => {
  const runs = chat.snapshot.runs
  const messageId = random() < 0.5 ? runs[between(random, 0, Math.max(0, runs.length - 1))]?.messageIds[0] : undefined
  const sent = await chat.regenerate(messageId)
  people.expect(sent, processNumber)
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
  [4, answerLate],
  [4, answerAgain],
  [2, regenerate],
  [1, (chat) => chat.recover()],
  [1, (chat) => chat.release()],
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
