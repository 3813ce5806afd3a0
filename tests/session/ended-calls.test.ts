import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { memoryLog } from 'thinharness'
import type { TranscriptEntry } from 'thinharness'
import { Sessions } from 'thinharness/session'
import type { Chat } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf, tool } from '../harness/support.js'
import { gate, processLog, sessionsOf, until } from './support.js'

/** What a model reads of calls, by their ids. */
function results(entries: readonly TranscriptEntry[]): Record<string, unknown> {
  return Object.fromEntries(
    entries.flatMap((entry) => (entry.role === 'tool' ? [[entry.callId, entry.content] as const] : [])),
  )
}

/** What the next request of the conversation and its transcript say of the calls of its first run. The snapshot has their ends. */
async function readings(sessions: Sessions, chat: Chat, model: ScriptedModel): Promise<readonly object[]> {
  await (
    await chat.send('Next.')
  ).done
  const sent = model.requests.at(-1)?.entries ?? []
  const { calls = [] } = chat.snapshot.runs[0] ?? {}
  expect(calls.map(({ status }) => status).filter((status) => status !== 'completed' && status !== 'failed')).toEqual(
    [],
  )
  return [results(sent), results(await sessions.messages(chat.threadId))]
}

describe('every call of an ended run has its end, wherever the conversation is shown', () => {
  test.each(['approval', 'question', 'two'])('after a cancel while it waits: %s', async (kind) => {
    const model = new ScriptedModel()
    if (kind === 'two') model.calls('pay').calls('ask')
    else model.calls(kind === 'approval' ? 'pay' : 'ask')
    model.always('Next.')
    const ask = tool('ask', (_args, context) => context.ask({ question: 'How many?' }, z.number()))
    const harness = harnessOf({ model, tools: [tool('pay', () => 'paid', { requiresApproval: true }), ask] })
    const sessions = sessionsOf({ harness })
    const chat = await sessions.open()
    await (
      await chat.send('Go.')
    ).done
    await chat.cancel()
    const [sent, listed] = await readings(sessions, chat, model)
    expect(Object.keys(sent ?? {})).toHaveLength(1)
    expect(listed).toEqual(sent)
  })

  test('after a crash', async () => {
    const log = memoryLog()
    const dying = processLog(log)
    const started = gate()
    const work = tool('work', () => {
      started.open()
      return new Promise(() => undefined)
    })
    const first = harnessOf({ model: new ScriptedModel().calls('work'), tools: [work] })
    await (await new Sessions({ log: dying.log, harness: first }).open('t1')).send('Go.')
    await started.opened
    await dying.kill()
    const model = new ScriptedModel().always('Next.')
    const sessions = sessionsOf({ log, harness: harnessOf({ model, tools: [work] }) })
    const chat = await sessions.open('t1')
    await chat.cancel()
    const [sent, listed] = await readings(sessions, chat, model)
    expect(JSON.stringify(sent)).toContain('Interrupted')
    expect(listed).toEqual(sent)
  })

  test('at a limit of calls', async () => {
    const model = new ScriptedModel().calls('work').always('Next.')
    const harness = harnessOf({ model, tools: [tool('work')], limits: { modelRequests: 1 } })
    const sessions = sessionsOf({ harness })
    const chat = await sessions.open()
    await (
      await chat.send('Go.')
    ).done
    const [sent, listed] = await readings(sessions, chat, model)
    expect(listed).toEqual(sent)
  })

  test('with an answer that a tool call gave', async () => {
    const model = new ScriptedModel().calls('final_result', { n: 1 }).calls('final_result', { n: 2 })
    const harness = harnessOf({ model, outputType: z.object({ n: z.number() }), outputMode: 'tool' })
    const sessions = sessionsOf({ harness })
    const chat = await sessions.open()
    await (
      await chat.send('Go.')
    ).done
    const [sent, listed] = await readings(sessions, chat, model)
    expect(listed).toMatchObject(sent ?? {})
  })
})

test('an answer that comes while the run that asks is being cancelled is stale, however long the store takes', async () => {
  const held = gate()
  const log = memoryLog()
  const claim = log.claim.bind(log)
  log.claim = async (ref, owner, ttlMs) => {
    // The run gives its log back when it pauses.
    if (ref.kind === 'run' && ttlMs === 0) await held.opened
    return claim(ref, owner, ttlMs)
  }
  const pay = tool('pay', () => 'paid', { requiresApproval: true })
  const harness = harnessOf({ model: new ScriptedModel().calls('pay').says('Done.'), tools: [pay] })
  const chat = await sessionsOf({ log, harness }).open()
  await chat.send('Pay.')
  await until(chat, ({ kind }) => kind === 'run_completed')
  const cancelling = chat.cancel()
  const answering = chat.answer([{ callId: 'call_1', approved: true }])
  held.open()
  await cancelling
  expect(await answering).toMatchObject([{ callId: 'call_1', status: 'stale' }])
  expect(chat.snapshot.runs[0]?.status).toBe('cancelled')
})
