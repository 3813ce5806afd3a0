import { expect, test } from 'vitest'
import { memoryLog } from 'thinharness'
import type { Chat, ChatEvent, ChatSnapshot } from 'thinharness/session'
import { reduceChat, tasks } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf, tool } from '../harness/support.js'
import { event } from '../core/state/support.js'
import { sessionsOf, until } from './support.js'

/** A conversation with most of what can happen in one. */
async function eventful(): Promise<Chat> {
  const pay = tool('pay', () => ({ paid: true }), { requiresApproval: true })
  const never = tool('never', (_args, { signal }) => new Promise((_, stop) => signal.addEventListener('abort', stop)))
  const task = { content: 'Pay', status: 'pending', activeForm: 'Paying' }
  const model = new ScriptedModel()
    .replies({ text: 'First the list.', calls: [{ name: 'task_write', arguments: { tasks: [task] } }] })
    .callsAll([{ name: 'pay' }, { name: 'pay' }])
    .says('Paid.')
    .calls('never')
    .replies({ fault: 'error', error: new Error('Down.') })
    .says('Back.')
  const harness = harnessOf({ model, tools: [pay, never], use: [tasks()] })
  const chat = await sessionsOf({ log: memoryLog(), harness }).open('t1')
  await (
    await chat.send('Pay.')
  ).done
  await chat.answer([{ callId: chat.pending[0]?.callId ?? '', approved: true, remember: 'tool' }], { by: 'ann' })
  await chat.whenIdle()
  await chat.send('Wait.')
  await until(chat, ({ kind }) => kind === 'tool_call_started')
  await until(chat, (event) => event.kind === 'tool_call_started' && event.toolName === 'never')
  await chat.steer('Steered.')
  await chat.send('Queued.')
  await chat.cancel()
  await chat.queue.release()
  await chat.whenIdle()
  await chat.rename('Bills')
  await chat.tag({ add: ['money'] })
  return chat
}

async function eventsOf(chat: Chat, after?: string): Promise<readonly ChatEvent[]> {
  const over = new AbortController()
  const events: ChatEvent[] = []
  const { seq } = chat.snapshot.thread
  for await (const event of chat.events({ after, signal: over.signal })) {
    events.push(event)
    if ('threadId' in event && event.seq === seq) break
  }
  over.abort()
  return events
}

function withoutNothing(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value))
}

test('SB-108 SB-119 the events of a conversation have one order without gaps, from any cursor on', async () => {
  const chat = await eventful()
  const all = await eventsOf(chat)
  const numbers = new Map<string, number>()
  for (const event of all) {
    const log = 'threadId' in event ? '' : event.runId
    expect(event.seq).toBe((numbers.get(log) ?? 0) + 1)
    numbers.set(log, event.seq)
  }
  for (const at of [0, 7, all.length - 2]) {
    const rest = await eventsOf(chat, all[at]?.cursor)
    expect(rest.map(({ cursor }) => cursor)).toEqual(all.slice(at + 1).map(({ cursor }) => cursor))
  }
  await expect(eventsOf(chat, 'nonsense')).rejects.toMatchObject({ code: 'invalid_options' })
})

test('SB-110 SB-111 every event is plain JSON, and the fold of the events is the snapshot', async () => {
  const chat = await eventful()
  const events = await eventsOf(chat)
  for (const event of events) expect(withoutNothing(event)).toEqual(event)
  let folded: ChatSnapshot | undefined
  for (const event of events) folded = reduceChat(folded, withoutNothing(event) as ChatEvent)
  expect(folded).toEqual(withoutNothing(chat.snapshot))
})

test('SB-114 members of the snapshot that an event does not change keep their identity', async () => {
  const chat = await eventful()
  const { snapshot } = chat
  await chat.rename('Other')
  expect(chat.snapshot).not.toBe(snapshot)
  expect(chat.snapshot.runs).toBe(snapshot.runs)
  expect(chat.snapshot.tasks).toBe(snapshot.tasks)
  await (
    await chat.send('More.')
  ).done
  snapshot.runs.forEach((run, index) => expect(chat.snapshot.runs[index]).toBe(run))
})

test('SB-116 the calls of a run that has ended have ended', async () => {
  const { runs } = (await eventful()).snapshot
  const states = runs.flatMap(({ calls }) => Object.values(calls).map(({ toolName, status }) => [toolName, status]))
  expect(states).toContainEqual(['never', 'failed'])
  expect(states.filter(([, status]) => status !== 'completed' && status !== 'failed')).toEqual([])
})

test('when a run pauses, only what it waits for is pending: a child run that had asked may have ended after a crash', () => {
  const ask = (callId: string) =>
    ({ kind: 'approval', callId, toolName: 'pay', arguments: '{}', path: ['run_t'] }) as const
  const [ofChild, own] = [ask('call_1/later/call_5'), ask('call_8')]
  const events = [
    event('run_started', 1),
    event('approval_requested', 2, { items: [ofChild], background: 'call_1/later' }),
    event('run_started', 3, { begun: 'recovered' }),
    event('approval_requested', 4, { items: [own] }),
    event('run_completed', 5, { stopReason: 'approval_required', pending: ['call_8'] }),
  ]
  const shown = events.reduce<ChatSnapshot | undefined>(reduceChat, undefined)
  expect(shown).toMatchObject({ phase: 'waiting', pending: [own] })
})

test('SB-109 a reader that throws, and one that stops, disturb neither the run nor the others', async () => {
  const model = new ScriptedModel().says('One two three.').says('Four.')
  const chat = await sessionsOf({ harness: harnessOf({ model }) }).open()
  const sent = await chat.send('Count.')
  const throwing = (async () => {
    for await (const { kind } of chat.events()) throw new Error(`Reader of ${kind}.`)
  })()
  await expect(throwing).rejects.toThrow('Reader of thread_opened.')
  for await (const { seq } of chat.events()) if (seq === 1) break
  expect(await sent.done).toMatchObject({ status: 'completed', text: 'One two three.' })
  expect(await (await chat.send('On.')).done).toMatchObject({ text: 'Four.' })
})

test('SB-112 the cost of a delta does not grow with the reply: ten thousand of them are less than 4 MB as JSON', async () => {
  const model = new ScriptedModel().replies(({ options }) => {
    for (let index = 0; index < 10_000; index += 1) options.onDelta?.({ kind: 'text_delta', text: 'ten chars.' })
    return 'ten chars.'.repeat(10_000)
  })
  const chat = await sessionsOf({ harness: harnessOf({ model }) }).open()
  let bytes = 0
  const reading = until(chat, (event) => {
    bytes += JSON.stringify(event).length
    return event.kind === 'run_completed'
  })
  await chat.send('Go.')
  await reading
  expect(bytes).toBeLessThan(4_000_000)
})

test('SB-118 child runs of one step are matched with the calls that started them, whatever their names', async () => {
  const child = tool('child', async (args, context) => {
    return (
      await context.spawn({ prompt: JSON.stringify(args['task']), model: new ScriptedModel().says('Done.') }).result
    ).text
  })
  const model = new ScriptedModel()
    .callsAll(['a', 'b'].map((task) => ({ name: 'child', arguments: { task } })))
    .says('Both.')
  const chat = await sessionsOf({ harness: harnessOf({ model, tools: [child] }) }).open()
  const over = new AbortController()
  const begun: unknown[] = []
  const reading = (async () => {
    for await (const event of chat.events({ children: true, signal: over.signal })) {
      if (event.kind === 'run_started' && event.parentRunId !== null) begun.push([event.parentToolCallId, event.prompt])
      if (event.kind === 'run_completed' && event.parentRunId === null) break
    }
  })()
  await chat.send('Go.')
  await reading
  over.abort()
  expect(begun.toSorted()).toEqual([
    ['call_1', '"a"'],
    ['call_2', '"b"'],
  ])
})
