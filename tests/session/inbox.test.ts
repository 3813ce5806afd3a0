import { describe, expect, test, vi } from 'vitest'
import type { LogStore } from 'thinharness'
import type { Chat, InboxItem } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf, tool } from '../harness/support.js'
import { allStores, codeOf, sessionsOf } from './support.js'

const pay = tool('pay', () => 'Paid.', { requiresApproval: true })

/** The message `pay` waits for an approval. */
function payments(): ReturnType<typeof harnessOf> {
  const model = new ScriptedModel().always(({ heard }) =>
    'prompt' in heard && JSON.stringify(heard.prompt).includes('pay')
      ? { calls: [{ name: 'pay', arguments: {} }] }
      : { text: 'Done.' },
  )
  return harnessOf({ model, tools: [pay] })
}

async function paused(chat: Chat, text = 'pay'): Promise<Chat> {
  await (
    await chat.send(text)
  ).done
  return chat
}

async function collect(items: AsyncIterable<InboxItem>): Promise<InboxItem[]> {
  const all: InboxItem[] = []
  for await (const item of items) all.push(item)
  return all
}

function threads(items: readonly InboxItem[]): string[] {
  return items.map(({ threadId }) => threadId)
}

describe.each(await allStores())('the inbox, in %s', (_name, open: () => LogStore) => {
  test('it pages through what waits in all threads, and shows who answered and when', async () => {
    const sessions = sessionsOf({ log: open(), harness: payments() })
    for (const id of ['a', 'b', 'c'])
      await paused(await sessions.for({ resourceId: id === 'c' ? 'bob' : 'ann' }).create({ threadId: id, title: id }))
    await paused(await sessions.open('d'), 'nothing')
    const page = await collect(sessions.inbox({ limit: 2 }))
    const all = [...page, ...(await collect(sessions.inbox({ before: page[1] })))]
    expect([page.length, ...threads(all).sort()]).toEqual([2, 'a', 'b', 'c'])
    const asked = { title: 'c', firstMessage: 'pay', resourceId: 'bob', answered: null }
    expect(all.find(({ threadId }) => threadId === 'c')).toMatchObject(asked)
    expect(threads(await collect(sessions.for({ resourceId: 'ann' }).inbox())).sort()).toEqual(['a', 'b'])
    expect(await codeOf(collect(sessions.inbox({ before: 'no' })))).toBe('invalid_options')
    const chat = await sessions.open('b')
    await chat.answer([{ callId: chat.pending[0]?.callId ?? '', approved: true }], { by: 'eve' })
    await chat.whenIdle()
    expect(threads(await collect(sessions.inbox())).sort()).toEqual(['a', 'c'])
    const [answered, ...others] = await collect(sessions.inbox({ answered: true }))
    expect(others).toEqual([])
    expect(answered).toMatchObject({ threadId: 'b', item: { toolName: 'pay' }, answered: { by: 'eve' } })
    expect(answered?.answered?.answer).toMatchObject({ approved: true })
    expect(Date.parse(answered?.answered?.at ?? '')).toBeGreaterThanOrEqual(Date.parse(answered?.askedAt ?? ''))
  })

  test('a rule answers what has waited for too long, and claims no other thread', async () => {
    const log = open()
    const before = sessionsOf({ log, harness: payments() })
    for (const id of ['a', 'b']) await paused(await before.create({ threadId: id }))
    await before.close()
    const sessions = sessionsOf({ log, harness: payments() })
    const none = { afterMs: 60_000, answer: () => ({ approved: false }) } as const
    expect(await sessions.expire(none)).toEqual([])
    const expired = await sessions.expire({
      afterMs: 0,
      answer: ({ threadId }) => (threadId === 'a' ? { approved: false, reason: 'Too late.' } : null),
    })
    expect(expired).toMatchObject([{ item: { threadId: 'a' }, status: 'accepted' }])
    expect(await log.inspect({ kind: 'thread', id: 'b' })).toMatchObject({ owner: null })
    const chat = await sessions.open('a')
    await chat.whenIdle()
    const call = (chat.snapshot.runs[0]?.calls ?? [])[0]
    expect(call).toMatchObject({ answers: [{ by: 'expiry', answer: { reason: 'Too late.' } }] })
    expect(threads(await collect(sessions.inbox()))).toEqual(['b'])
  })

  test('an answer of the rule that is invalid leaves its item to people', async () => {
    const sessions = sessionsOf({ log: open(), harness: payments() })
    await paused(await sessions.create({ threadId: 'a' }))
    const expired = await sessions.expire({ afterMs: 0, answer: () => ({ answer: 'Perhaps.' }) })
    expect(expired).toMatchObject([{ status: 'failed', error: { code: 'invalid_answer' } }])
    expect(threads(await collect(sessions.inbox()))).toEqual(['a'])
    expect(await codeOf(sessions.expire({ afterMs: -1, answer: () => null }))).toBe('invalid_options')
  })

  test('it reads the logs of the runs that wait, and no others', async () => {
    const log = open()
    const sessions = sessionsOf({ log, harness: payments() })
    for (let count = 0; count < 20; count += 1)
      await paused(await sessions.create({ threadId: `t${count}` }), count % 10 === 0 ? 'pay' : 'nothing')
    const read = vi.spyOn(log, 'read')
    expect(threads(await collect(sessions.inbox())).sort()).toEqual(['t0', 't10'])
    expect(read.mock.calls.length).toBeLessThanOrEqual(4)
  })
})
