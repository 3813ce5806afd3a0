import { SessionError } from '../errors.js'
import type { ChatAnswer } from '../thread/grants.js'
import type { InboxItem } from './inbox.js'

/** An answer to an item that is known: its id may be left out. */
export type ItemAnswer = WithoutId<ChatAnswer>

type WithoutId<Each> = Each extends ChatAnswer
  ? Omit<Each, 'callId' | 'by'> & { readonly callId?: string | undefined; readonly by?: string | undefined }
  : never

/** A conversation that can be answered. */
export interface Answerable {
  answer(answers: readonly ChatAnswer[]): Promise<readonly { readonly status: 'accepted' | 'stale' | 'posted' }[]>
}

export interface ExpireOptions {
  /** Only items that have waited for so long, in ms. */
  readonly afterMs: number
  /** The answer to an item; null leaves it to people. */
  readonly answer: (item: InboxItem) => ItemAnswer | null | Promise<ItemAnswer | null>
}

/** What became of an item that waited for too long. */
export interface ExpiredItem {
  readonly item: InboxItem
  /** `stale`: a person was first. `posted`: the thread's owner, another process, has not taken it yet. `failed`: the answer was refused or could not be stored, and the item still waits. */
  readonly status: 'accepted' | 'stale' | 'posted' | 'failed'
  /** If it failed. */
  readonly error?: Error
}

/** Who answers, for items that `expire` answers. */
const BY = 'expiry'

/** Answers items that have waited for too long, those of one run together. */
export async function expireItems(
  inbox: AsyncIterable<InboxItem>,
  { afterMs, answer }: ExpireOptions,
  open: (threadId: string) => Promise<Answerable>,
): Promise<readonly ExpiredItem[]> {
  if (!(afterMs >= 0) || typeof answer !== 'function')
    throw new SessionError(
      'invalid_options',
      'Expected `expire` to be given `afterMs` from 0 up and a function `answer`.',
    )
  const before = new Date(Date.now() - afterMs).toISOString()
  const byRun = new Map<string, { readonly items: InboxItem[]; readonly answers: ChatAnswer[] }>()
  for await (const item of inbox) {
    if (item.askedAt > before) continue
    const itemAnswer = await answer(item)
    if (itemAnswer === null) continue
    const run = byRun.get(item.runId) ?? { items: [], answers: [] }
    run.items.push(item)
    run.answers.push(answerTo(item.item.callId, itemAnswer, BY))
    byRun.set(item.runId, run)
  }
  const expired: ExpiredItem[] = []
  for (const { items, answers } of byRun.values()) expired.push(...(await answerItems(items, answers, open)))
  return expired
}

async function answerItems(
  items: readonly InboxItem[],
  answers: readonly ChatAnswer[],
  open: (threadId: string) => Promise<Answerable>,
): Promise<readonly ExpiredItem[]> {
  try {
    const chat = await open(items[0]?.threadId ?? '')
    const statuses = await chat.answer(answers)
    return items.map((item, index) => ({ item, status: statuses[index]?.status ?? 'accepted' }))
  } catch (thrown) {
    const error = thrown instanceof Error ? thrown : new Error(String(thrown))
    return items.map((item) => ({ item, status: 'failed', error }))
  }
}

/** The answer that a rule or a responder gives to an item. */
export function answerTo(callId: string, answer: ItemAnswer, by: string): ChatAnswer {
  return { ...answer, callId, by }
}
