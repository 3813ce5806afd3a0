import fc from 'fast-check'
import { expect, test } from 'vitest'
import { memoryLog } from 'thinharness'
import type { LogStore } from 'thinharness'
import { Sessions } from 'thinharness/session'
import type { Chat, Sent, ThreadEvent } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf, tool } from '../harness/support.js'
import { MortalLog } from './mortal-log.js'

const ACTIONS = [
  'send',
  'send',
  'steer',
  'steerOrQueue',
  'interrupt',
  'decline',
  'cancel',
  'drop',
  'approve',
  'reject',
  'pause',
] as const
type Action = (typeof ACTIONS)[number]

interface Life {
  readonly actions: readonly Action[]
  /** The process dies at this append. */
  readonly appends: number
  readonly storesLast: boolean
}

const life = fc.record({
  actions: fc.array(fc.constantFrom(...ACTIONS), { minLength: 1, maxLength: 8 }),
  appends: fc.integer({ min: 1, max: 40 }),
  storesLast: fc.boolean(),
})

/** A reply to each request: text, a tool that runs, or one that a person must approve. */
function model(): ScriptedModel {
  let asked = 0
  return new ScriptedModel().always(() => {
    asked += 1
    if (asked % 3 === 1) return { calls: [{ name: 'work', arguments: {} }] }
    return asked % 3 === 2 ? { calls: [{ name: 'pay', arguments: {} }] } : 'Done.'
  })
}

/** The messages of one thread over all lives. */
class Messages {
  readonly stored = new Set<string>()
  readonly refused = new Set<string>()
  readonly returned = new Set<string>()
  #next = 0

  id(): string {
    this.#next += 1
    return `m${this.#next}`
  }

  sent(messageId: string, sending: Promise<Sent>): void {
    sending.then(
      () => this.stored.add(messageId),
      () => this.refused.add(messageId),
    )
  }
}

async function act(chat: Chat, action: Action, messages: Messages): Promise<void> {
  const messageId = messages.id()
  const send = (sending: Promise<Sent>): Promise<unknown> => {
    messages.sent(messageId, sending)
    return sending
  }
  switch (action) {
    case 'send':
      await send(chat.send(messageId, { messageId }))
      return
    case 'steer':
      await send(chat.steer(messageId, { messageId }))
      return
    case 'steerOrQueue':
      await send(chat.send(messageId, { messageId, whenBusy: 'steer' }))
      return
    case 'interrupt':
      await send(chat.steer(messageId, { messageId, interrupt: true }))
      return
    case 'decline':
      await send(chat.send(messageId, { messageId, whenBusy: 'decline' }))
      return
    case 'cancel':
      await chat.cancel()
      return
    case 'drop': {
      for (const dropped of await chat.cancel({ queue: 'drop' })) messages.returned.add(dropped.messageId)
      return
    }
    case 'approve':
    case 'reject': {
      const [item] = chat.pending
      if (item !== undefined) await chat.answer([{ callId: item.callId, approved: action === 'approve' }])
      return
    }
    case 'pause':
      await new Promise((resolve) => setImmediate(resolve))
  }
}

function sessionsOver(log: LogStore): Sessions {
  const work = tool('work', () => 'done', { annotations: { readOnly: true } })
  const pay = tool('pay', () => 'paid', { requiresApproval: true, annotations: { idempotent: true } })
  return new Sessions({
    log,
    harness: harnessOf({ model: model(), tools: [work, pay], limits: { modelRequests: null } }),
  })
}

/** Lives until its actions are done, or its log dies. */
async function live({ actions, appends, storesLast }: Life, base: LogStore, messages: Messages): Promise<void> {
  const log = new MortalLog(base, appends, storesLast)
  const sessions = sessionsOver(log)
  const dead = (async () => {
    while (!log.isDead) await new Promise((resolve) => setTimeout(resolve, 1))
  })()
  const acting = (async () => {
    const chat = await sessions.open('t')
    for (const action of actions) await act(chat, action, messages)
  })()
  await Promise.race([acting, dead])
  await log.kill()
  await dead
}

/** The ids of the messages in the transcript and in the queue. */
function places(chat: Chat): string[] {
  const { runs, queue } = chat.snapshot
  const inRuns = runs.flatMap(({ messageIds, entries }) => [
    ...messageIds,
    ...entries.flatMap((entry) => (entry.role === 'user' ? (entry.messageId ?? []) : [])),
  ])
  return [...inRuns, ...queue.map(({ messageId }) => messageId)]
}

test('each message is exactly once in the transcript, in the queue or back with its sender, whenever a process dies', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(life, { minLength: 1, maxLength: 4 }), async (lives) => {
      const base = memoryLog()
      const messages = new Messages()
      for (const each of lives) await live(each, base, messages)
      const sessions = sessionsOver(base)
      const chat = await sessions.open('t')
      for (let round = 0; round < 50 && (chat.phase !== 'idle' || chat.queue.list().length > 0); round++) {
        if (chat.phase === 'interrupted' || chat.phase === 'waiting') await chat.cancel()
        await chat.queue.release()
        const [item] = chat.pending
        if (item !== undefined) await chat.answer([{ callId: item.callId, approved: true }])
        await chat.whenIdle()
      }
      await sessions.close()
      // Their sender removed them, and may have died before they were given back.
      for await (const event of base.read<ThreadEvent>({ kind: 'thread', id: 't' }))
        if (event.kind === 'message_removed') messages.returned.add(event.messageId)
      const found = places(chat)
      expect(new Set(found).size, `duplicates among ${found.join(' ')}`).toBe(found.length)
      for (const messageId of messages.stored) {
        if (messages.returned.has(messageId)) expect(found).not.toContain(messageId)
        else expect(found).toContain(messageId)
      }
      for (const messageId of messages.refused) expect(found).not.toContain(messageId)
    }),
    { numRuns: Number(process.env['SESSION_LIVES'] ?? 60) },
  )
})
