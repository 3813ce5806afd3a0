import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { defineTool, memoryLog } from 'thinharness'
import { Sessions } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { createHandlers, toUIMessages } from 'thinharness/ui'
import type { AnyRunEvent, UiChunk } from 'thinharness/ui'
import { followRun } from 'thinharness/ui/client'
import { harnessOf, tool } from '../../harness/support.js'
import { gate } from '../../session/support.js'
import { collect } from '../../support/collect.js'
import { messageAfter, withChildrenLast } from './ai-sdk/clients.js'

const BASE = 'http://localhost/api'

const delegate = defineTool({
  name: 'delegate',
  description: 'Starts a child run.',
  parameters: z.object({ depth: z.number() }),
  handler: async ({ depth }, { spawn }) =>
    (await spawn({ prompt: String(depth), agentName: `agent ${depth}`, tools: 'inherit' }).result).text,
})

/** A run with a child run, which has one too; the last of them waits in the middle of its reply until `release`. */
function servers() {
  const { opened, open: release } = gate()
  const { opened: reached, open: reach } = gate()
  const log = memoryLog()
  const model = new ScriptedModel().always(async ({ transcript, options }) => {
    const [prompt] = transcript
    const depth = prompt?.role === 'user' && prompt.content[0]?.type === 'text' ? Number(prompt.content[0].text) : 0
    if (transcript.length > 1) return `Done at ${depth}.`
    if (depth < 2) return { text: 'Well.', calls: [{ name: 'delegate', arguments: { depth: depth + 1 } }] }
    options.onDelta?.({ kind: 'text_delta', text: 'Done ' })
    reach()
    await opened
    return 'Done at 2.'
  })
  const harness = harnessOf({ model, tools: [delegate, tool('look')], log })
  onTestFinished(() => harness.close())
  const sessions = (): Sessions => {
    const opened = new Sessions({ log, harness })
    onTestFinished(() => opened.close())
    return opened
  }
  const handlers = (kind: 'sessions' | 'harness') =>
    kind === 'sessions' ? createHandlers({ sessions: sessions() }) : createHandlers({ harness, log })
  return { log, release, reached, handlers }
}

function post(path: string, body: object): Request {
  return new Request(`${BASE}${path}`, { method: 'POST', body: JSON.stringify(body) })
}

type Handlers = ReturnType<typeof createHandlers>

async function begun({ requests }: Handlers): Promise<string> {
  const sent = await requests(post('/threads/t1/messages', { text: '0', messageId: 'm1' }))
  return ((await sent.json()) as { readonly runId: string }).runId
}

/** The events of a run and its child runs, by a client that reconnects. */
function followed({ events }: Handlers, runId: string): Promise<AnyRunEvent[]> {
  const fetched = ((url: string, init?: RequestInit) => events(new Request(url, init))) as typeof fetch
  return collect(
    followRun(`${BASE}/runs/${runId}/events?children=1`, { fetch: fetched }) as unknown as AsyncIterable<AnyRunEvent>,
  )
}

function stored(events: readonly AnyRunEvent[]): readonly string[] {
  return events.filter(({ durable }) => durable).map(({ agentName, seq, kind }) => `${agentName ?? '-'} ${seq} ${kind}`)
}

/** In which order runs that are executed at the same time stored their events is not in the log. */
function byRun(events: readonly AnyRunEvent[]): readonly string[] {
  return [...stored(events)].sort()
}

describe.each(['sessions', 'harness'] as const)('child runs over %s', (kind) => {
  test('SS-07 SS-22 are followed as they come, and give the same as the log', async () => {
    const { handlers, release, reached } = servers()
    const served = handlers(kind)
    const runId = await begun(served)
    const early = followed(served, runId)
    await reached
    const late = followed(served, runId)
    await new Promise((resolve) => setImmediate(resolve))
    release()
    const [live, lateLive] = [await early, await late]
    const isDelta = ({ kind: each, agentName }: AnyRunEvent): boolean => each === 'text_delta' && agentName !== null
    expect(live.some(isDelta)).toBe(true)
    const replayed = await followed(served, runId)
    expect(byRun(live)).toEqual(byRun(replayed))
    expect(byRun(lateLive)).toEqual(byRun(replayed))
    const place = (name: string): number => stored(live).findIndex((each) => each.startsWith(name))
    expect(place('- 4 tool_call_started')).toBeLessThan(place('agent 1 1 run_started'))
    expect(place('agent 1 4 tool_call_started')).toBeLessThan(place('agent 2 1 run_started'))
  })

  test('UI-25 XL-01 the message of a page is the same live and from the log', async () => {
    const { handlers, release, reached, log } = servers()
    const { aiSdk } = handlers(kind)
    const message = { id: 'm1', role: 'user', parts: [{ type: 'text', text: '0' }] }
    const response = await aiSdk(post('/chat', { id: 't1', messages: [message] }))
    await reached
    release()
    const body = await response.text()
    const chunks = [...body.matchAll(/^data: (\{.*\})$/gm)].map(([, json = '']) => JSON.parse(json) as UiChunk)
    const runs = chunks.filter(({ type }) => type === 'data-run')
    expect(runs.length).toBeGreaterThan(1)
    const live = withChildrenLast(await messageAfter(7, chunks))
    const replayed = await aiSdk(new Request(`${BASE}/chat/t1/stream?replay=1`))
    const again = [...(await replayed.text()).matchAll(/^data: (\{.*\})$/gm)].map(
      ([, json = '']) => JSON.parse(json) as UiChunk,
    )
    expect(live).toEqual(withChildrenLast(await messageAfter(7, again)))
    expect(live.parts).toContainEqual(
      expect.objectContaining({ type: 'data-run', data: expect.objectContaining({ status: 'completed' }) as unknown }),
    )
    expect(toUIMessages(await collect(log.read({ kind: 'run', id: live.id })))).toHaveLength(2)
  })
})

test('SS-07 SS-08 a reader of another process gets the events of child runs from their logs', async () => {
  const { handlers, release, reached } = servers()
  const owner = handlers('sessions')
  const runId = await begun(owner)
  await reached
  const other = followed(handlers('sessions'), runId)
  const otherHarness = followed(handlers('harness'), runId)
  await new Promise((resolve) => setImmediate(resolve))
  release()
  const replay = async (): Promise<readonly string[]> => byRun(await followed(owner, runId))
  expect([byRun(await other), byRun(await otherHarness)]).toEqual([await replay(), await replay()])
})

test('SS-19 with child runs, ids are the last numbers of each run, and the cursor continues all of them', async () => {
  const { handlers, release } = servers()
  const served = handlers('harness')
  const runId = await begun(served)
  release()
  const whole = await followed(served, runId)
  const response = await served.events(new Request(`${BASE}/runs/${runId}/events?children=1`))
  const ids = [...(await response.text()).matchAll(/^id: (.*)$/gm)].map(([, id = '']) => id)
  expect(ids[0]).toBe(`${runId}:1`)
  expect(ids.find((id) => id.includes(','))).toMatch(new RegExp(`^${runId}:4,.+:1$`))
  expect(ids).toHaveLength(stored(whole).length)
  for (const [index, after] of ids.entries()) {
    const url = `${BASE}/runs/${runId}/events?children=1&after=${encodeURIComponent(after)}`
    const rest = await served.events(new Request(url))
    const left = rest.status === 204 ? [] : [...(await rest.text()).matchAll(/^id: (.*)$/gm)]
    expect(left, after).toHaveLength(ids.length - index - 1)
  }
})
