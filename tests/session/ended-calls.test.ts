import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { memoryLog } from 'thinharness'
import type { TranscriptEntry } from 'thinharness'
import { reduceChat, Sessions } from 'thinharness/session'
import type { Chat, ChatSnapshot } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { createHandlers, toAgUiMessages } from 'thinharness/ui'
import type { AgUiMessage, UiMessage } from 'thinharness/ui'
import { harnessOf, tool } from '../harness/support.js'
import { eventsOfRun } from '../support/collect.js'
import { gate, processLog, sessionsOf, until } from './support.js'

/** What a model reads of calls, by their ids. */
function results(entries: readonly TranscriptEntry[]): Record<string, unknown> {
  return Object.fromEntries(
    entries.flatMap((entry) => (entry.role === 'tool' ? [[entry.callId, entry.content] as const] : [])),
  )
}

const contentOf = (output: unknown): unknown => (JSON.parse(String(output)) as { readonly content: unknown }).content

/** What each reading of a conversation says of the calls of its first run, by their ids: what people read has no envelope. */
async function shown(sessions: Sessions, chat: Chat): Promise<Record<string, Record<string, unknown>>> {
  const { calls = [] } = chat.snapshot.runs[0] ?? {}
  expect(calls.filter(({ status }) => status !== 'completed' && status !== 'failed')).toEqual([])
  const { requests } = createHandlers({ sessions, authorize: () => ({ resourceId: 'ann' }) })
  const messages = async <Message>(format: string): Promise<readonly Message[]> => {
    const url = `http://localhost/api/threads/${chat.threadId}/messages?format=${format}`
    return (await (await requests(new Request(url))).json()) as readonly Message[]
  }
  const agui = await messages<AgUiMessage>('agui')
  const ui = await messages<UiMessage>('ui')
  const parts = ui.flatMap((message) => message.parts).filter((part) => 'toolCallId' in part)
  const readings = {
    snapshot: Object.fromEntries(calls.map(({ callId, output }) => [callId, output])),
    listed: results(await sessions.for({ resourceId: 'ann' }).messages(chat.threadId)),
    agui: Object.fromEntries(agui.flatMap((each) => (each.role === 'tool' ? [[each.toolCallId, each.content]] : []))),
    ui: Object.fromEntries(
      parts.map(({ toolCallId, output, errorText, approval }) => [toolCallId, output ?? errorText ?? approval?.reason]),
    ),
  }
  const isOfRun = ([id]: readonly [string, unknown]): boolean => calls.some(({ callId }) => callId === id)
  const ofRun = Object.entries(readings).map(([name, all]) => [name, Object.entries(all).filter(isOfRun)] as const)
  return Object.fromEntries(ofRun.map(([name, entries]) => [name, Object.fromEntries(entries)]))
}

/** What the next request of the conversation, and all readings before and after it, say of the calls of its first run. */
async function readings(sessions: Sessions, chat: Chat, model: ScriptedModel): Promise<Record<string, unknown>> {
  const before = await shown(sessions, chat)
  await (
    await chat.send('Next.')
  ).done
  const sent = results(model.requests.at(-1)?.entries ?? [])
  const after = await shown(sessions, chat)
  expect(after).toEqual(before)
  expect(after['snapshot']).toEqual(after['listed'])
  const texts = Object.fromEntries(Object.entries(sent).map(([callId, output]) => [callId, contentOf(output)]))
  for (const name of ['agui', 'ui']) expect(texts, name).toMatchObject(after[name] ?? {})
  return { sent, ...after }
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
    const chat = await sessions.for({ resourceId: 'ann' }).open()
    await (
      await chat.send('Go.')
    ).done
    await chat.cancel()
    const { sent, listed, agui, ui } = await readings(sessions, chat, model)
    expect(Object.keys(sent ?? {})).toHaveLength(1)
    expect(listed).toEqual(sent)
    expect([agui, ui].map((shown) => Object.keys(shown ?? {}))).toEqual([
      Object.keys(sent ?? {}),
      Object.keys(sent ?? {}),
    ])
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
    await (await new Sessions({ log: dying.log, harness: first }).for({ resourceId: 'ann' }).open('t1')).send('Go.')
    await started.opened
    await dying.kill()
    const model = new ScriptedModel().always('Next.')
    const sessions = sessionsOf({ log, harness: harnessOf({ model, tools: [work] }) })
    const chat = await sessions.for({ resourceId: 'ann' }).open('t1')
    await chat.cancel()
    const { sent, listed, agui, ui } = await readings(sessions, chat, model)
    expect(JSON.stringify(sent)).toContain('Interrupted')
    expect(listed).toEqual(sent)
    expect([agui, ui].map((shown) => Object.keys(shown ?? {}))).toEqual([
      Object.keys(sent ?? {}),
      Object.keys(sent ?? {}),
    ])
  })

  test('at a limit of calls', async () => {
    const model = new ScriptedModel().calls('work').always('Next.')
    const harness = harnessOf({ model, tools: [tool('work')], limits: { modelRequests: 1 } })
    const sessions = sessionsOf({ harness })
    const chat = await sessions.for({ resourceId: 'ann' }).open()
    await (
      await chat.send('Go.')
    ).done
    const { sent, listed, agui, ui } = await readings(sessions, chat, model)
    expect(listed).toEqual(sent)
    expect([agui, ui].map((shown) => Object.keys(shown ?? {}))).toEqual([
      Object.keys(sent ?? {}),
      Object.keys(sent ?? {}),
    ])
  })

  test('with an answer that a tool call gave', async () => {
    const model = new ScriptedModel().calls('final_result', { n: 1 }).calls('final_result', { n: 2 })
    const harness = harnessOf({ model, outputType: z.object({ n: z.number() }), outputMode: 'tool' })
    const sessions = sessionsOf({ harness })
    const chat = await sessions.for({ resourceId: 'ann' }).open()
    await (
      await chat.send('Go.')
    ).done
    const { sent, listed } = await readings(sessions, chat, model)
    expect(listed).toMatchObject(sent ?? {})
  })

  test('until a retry of the run goes on with it', async () => {
    const log = memoryLog()
    const model = new ScriptedModel().callsAll([{ name: 'work' }, { name: 'work' }]).says('Done.')
    const harness = harnessOf({ model, tools: [tool('work', () => 'worked')], log, limits: { toolCalls: 1 } })
    await harness.run('Go.', { runId: 'run_1' }).catch(() => null)
    await harness.retry('run_1', { limits: { toolCalls: 2 } })
    const events = await eventsOfRun(log, 'run_1')
    const page = events.reduce<ChatSnapshot | undefined>(reduceChat, undefined)
    expect(page?.runs[0]?.calls.map(({ output }) => contentOf(output))).toEqual(['worked', 'worked'])
    const messages = toAgUiMessages(events)
    expect(messages.flatMap((each) => (each.role === 'tool' ? [each.content] : []))).toEqual(['worked', 'worked'])
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
