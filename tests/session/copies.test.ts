import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { Harness } from 'thinharness'
import type { ContentPart, LogStore } from 'thinharness'
import type { Chat, ChatEvent, Sessions } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf, tool } from '../harness/support.js'
import { allStores, gate, sessionsOf, until } from './support.js'

function removeMember(target: object, name: string): void {
  if (!Reflect.deleteProperty(target, name)) throw new TypeError('It is frozen.')
}

/** Tries to change an object and everything in it in every way; gives how many changes worked. */
function spoil(value: unknown, seen = new Set<unknown>()): number {
  if (typeof value !== 'object' || value === null || seen.has(value)) return 0
  seen.add(value)
  let spoilt = 0
  for (const member of Object.values(value)) spoilt += spoil(member, seen)
  const target = value as Record<string, unknown>
  const changes = [
    () => (target['added'] = 1),
    ...Object.keys(target).flatMap((name) => [() => (target[name] = 'spoilt'), () => removeMember(target, name)]),
    ...(Array.isArray(value) ? [() => value.push('spoilt'), () => void value.splice(0)] : []),
  ]
  for (const change of changes) {
    try {
      change()
      spoilt += 1
    } catch (error) {
      if (!(error instanceof TypeError)) throw error
    }
  }
  return spoilt
}

async function collect<Each>(items: AsyncIterable<Each>): Promise<Each[]> {
  const all: Each[] = []
  for await (const item of items) all.push(item)
  return all
}

/** Everything that a conversation gives out, anew. */
async function everything(sessions: Sessions, chat: Chat): Promise<Record<string, unknown>> {
  return {
    snapshot: chat.snapshot,
    queue: chat.queue.list(),
    pending: chat.pending,
    grants: chat.grants,
    events: await collect(chat.events({ live: false })),
    messages: await sessions.messages('t1'),
    threads: await collect(sessions.list()),
    inbox: await collect(sessions.inbox()),
    summary: await sessions.log.inspect({ kind: 'thread', id: 't1' }),
  }
}

describe.each(await allStores())('a conversation in the %s log', (_name, open: () => LogStore) => {
  test('is not changed by whoever changes what it gave out, or what it was given', async () => {
    const pay = tool('pay', (args) => ({ paid: args }), { requiresApproval: true })
    const model = new ScriptedModel().calls('pay', { to: 'a' }).calls('pay', { to: 'b' }).says('Paid.')
    model.calls('pay', { to: 'c' }).calls('ask').says('Fine.')
    const ask = tool('ask', (_args, context) => context.ask({ q: ['Sure?'] }, z.object({ a: z.array(z.string()) })))
    const sessions = sessionsOf({ log: open(), harness: harnessOf({ model, tools: [pay, ask] }) })
    const given = { tags: ['money'], metadata: { deep: { list: [1] } } }
    const chat = await sessions.create({ threadId: 't1', ...given })
    const live: ChatEvent[] = []
    const over = new AbortController()
    const reading = (async () => {
      for await (const event of chat.events({ signal: over.signal })) live.push(event)
    })()
    const parts: ContentPart[] = [{ type: 'text', text: 'Pay.' }]
    const metadata = { deep: { list: [1] } }
    const answers = [{ callId: 'call_1', approved: true, remember: { tool: ['pay'], decision: 'allow' } as const }]
    await (
      await chat.send(parts, { metadata })
    ).done
    await chat.answer(answers)
    await chat.whenIdle()
    const end = (await chat.send('Pay again.', { messageId: 'm2', metadata })).done
    await end
    for (const messageId of ['m3', 'm4']) await chat.send(parts, { messageId, metadata })
    const before = JSON.stringify(await everything(sessions, chat))
    for (const mine of [given, parts, metadata, answers]) expect(spoil(mine)).toBeGreaterThan(0)
    for (const [name, value] of Object.entries(await everything(sessions, chat)))
      for (const item of Array.isArray(value) && ['events', 'threads', 'inbox'].includes(name) ? value : [value])
        spoil(item)
    for (const event of live) expect(spoil(event)).toBe(0)
    expect(Object.isFrozen(await end)).toBe(true)
    for (const frozen of [chat.snapshot, chat.queue.list(), chat.pending, chat.grants]) expect(spoil(frozen)).toBe(0)
    expect(JSON.stringify(await everything(sessions, chat))).toBe(before)
    expect(await chat.answer([{ callId: chat.pending[0]?.callId ?? '', answer: { a: ['Yes.'] } }])).toMatchObject([
      { status: 'accepted' },
    ])
    expect((await chat.queue.remove('m4'))?.messageId).toBe('m4')
    over.abort()
    await reading
  })

  test('sends the model what was said, although the parts are edited after `send`', async () => {
    const { opened, open: release } = gate()
    const heard: string[] = []
    const model = new ScriptedModel().replies(async () => {
      await opened
      return 'One.'
    })
    model.replies((request) => {
      heard.push(JSON.stringify(request))
      return 'Two.'
    })
    const chat = await sessionsOf({ log: open(), harness: new Harness({ model }) }).open('t1')
    await chat.send('First.')
    const parts = [{ type: 'text' as const, text: 'Order one.' }]
    const sending = chat.send(parts)
    parts[0] = { type: 'text', text: 'Order a hundred.' }
    const { done } = await sending
    const queued = await until(chat, (event) => event.kind === 'message_queued' && 'content' in event)
    spoil(queued)
    spoil(parts)
    release()
    expect((await done).status).toBe('completed')
    expect(chat.snapshot.runs[1]?.prompt).toEqual([{ type: 'text', text: 'Order one.' }])
    expect(JSON.stringify(model.heard)).toContain('Order one.')
    expect(JSON.stringify(model.heard)).not.toMatch(/hundred|spoilt/)
  })
})
