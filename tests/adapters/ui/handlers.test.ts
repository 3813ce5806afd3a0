import { describe, expect, onTestFinished, test } from 'vitest'
import { memoryLog } from 'thinharness'
import { Sessions } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { createHandlers } from 'thinharness/ui'
import type { HandlerOptions } from 'thinharness/ui'
import { followRun, reduceChat } from 'thinharness/ui/client'
import type { ChatSnapshot, FollowedEvent } from 'thinharness/ui/client'
import { harnessOf, tool } from '../../harness/support.js'

/** Handlers over sessions and over a harness: the same requests. */
function servers(model: ScriptedModel, options: Partial<HandlerOptions> = {}) {
  const log = memoryLog()
  const pay = tool('pay', () => 'paid', { requiresApproval: true })
  return {
    sessions: () => {
      const sessions = new Sessions({ log, harness: harnessOf({ model, tools: [pay] }) })
      onTestFinished(() => sessions.close())
      return { log, ...createHandlers({ sessions, ...options }) }
    },
    harness: () => {
      const harness = harnessOf({ model, tools: [pay], log })
      onTestFinished(() => harness.close())
      return { log: log, ...createHandlers({ harness, log, ...options }) }
    },
  }
}

const BASE = 'http://localhost/api'

function post(path: string, body: object): Request {
  return new Request(`${BASE}${path}`, { method: 'POST', body: JSON.stringify(body) })
}

async function textOf(response: Response): Promise<string> {
  expect(response.status).toBe(200)
  return response.text()
}

describe.each(['sessions', 'harness'] as const)('handlers over %s', (kind) => {
  test('SS-11 SS-12 SS-18 a run is followed from its first event to its end', async () => {
    const { requests, events } = servers(new ScriptedModel().says('Hello there.'))[kind]()
    const sent = await requests(post('/threads/t1/messages', { text: 'Hi.', messageId: 'm1' }))
    expect(sent.status).toBe(202)
    const { runId, ...rest } = (await sent.json()) as { readonly runId: string }
    expect(rest).toEqual({ messageId: 'm1', status: 'started' })
    const response = await events(new Request(`${BASE}/runs/${runId}/events`))
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    const text = await textOf(response)
    expect(text).toMatch(/^retry: 2000\n: /)
    expect(text).toMatch(/\nid: 1\nevent: run_started\ndata: \{.*\}\n\n/)
    expect(text).not.toContain('"root"')
    expect(text).toMatch(/\nevent: end\ndata: \{"status":"completed","seq":4\}\n\n$/)
  })
})

test('SS-20 ?wait= answers with the stored events of a conversation as JSON, and waits if there is nothing new', async () => {
  const { requests, events } = servers(new ScriptedModel().says('One.').says('Two.')).sessions()
  const address = `${BASE}/threads/t1/events`
  const listed = async (
    query: string,
  ): Promise<{ readonly cursor: string; readonly list: readonly FollowedEvent[] }> => {
    const response = await events(new Request(`${address}?${query}`))
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
    return { cursor: response.headers.get('x-cursor') ?? '', list: (await response.json()) as readonly FollowedEvent[] }
  }
  const isOver = ({ list }: { readonly list: readonly FollowedEvent[] }): boolean =>
    list.some(({ kind }) => kind === 'run_completed')
  const untilOver = async (after: string): Promise<{ cursor: string; list: readonly FollowedEvent[] }> => {
    const list: FollowedEvent[] = []
    for (let cursor = after; ;) {
      const next = await listed(`wait=10&after=${cursor}`)
      cursor = next.cursor
      list.push(...next.list)
      if (isOver({ list })) return { cursor, list }
    }
  }
  await requests(post('/threads/t1/messages', { text: '1' }))
  const first = await untilOver('0')
  expect(first.list.map(({ kind }) => kind)).toEqual([
    ...['thread_opened', 'message_queued', 'run_begun'],
    ...['run_started', 'model_request_started', 'model_message', 'run_completed'],
  ])
  expect(first.list.at(-1)?.cursor).toBe(first.cursor)
  expect(first.list[3]).not.toHaveProperty('root')
  expect(await listed(`wait=0&after=${first.cursor}`)).toEqual({ cursor: first.cursor, list: [] })
  const second = untilOver(first.cursor)
  await requests(post('/threads/t1/messages', { text: '2' }))
  const { list } = await second
  expect(list[0]).toMatchObject({ kind: 'message_queued' })
  const whole = [...first.list, ...list].reduce<ChatSnapshot | undefined>(reduceChat, undefined)
  expect(whole?.runs.map(({ status }) => status)).toEqual(['completed', 'completed'])
  const refused = await events(new Request(`${address}?wait=soon`))
  expect([refused.status, await refused.json()]).toMatchObject([
    400,
    { message: expect.stringContaining('from 0 to 60, got "soon"') as string },
  ])
})

test('a conversation is followed by its cursor', async () => {
  const { requests, events } = servers(new ScriptedModel().says('One.').calls('pay', {}).says('Two.')).sessions()
  await requests(post('/threads/t1/messages', { text: '1' }))
  let snapshot: ChatSnapshot | undefined
  const seen: FollowedEvent[] = []
  const over = new AbortController()
  const fetched = ((url: string, init?: RequestInit) => events(new Request(url, init))) as typeof fetch
  for await (const event of followRun(`${BASE}/threads/t1/events`, { fetch: fetched, signal: over.signal })) {
    seen.push(event)
    snapshot = reduceChat(snapshot, event)
    if (event.kind === 'run_completed' && seen.filter(({ kind }) => kind === 'run_completed').length === 1)
      await requests(post('/threads/t1/messages', { text: '2' }))
    if (snapshot.phase === 'waiting') {
      const answers = [{ callId: snapshot.pending[0]?.callId, approved: true }]
      expect((await requests(post('/threads/t1/answers', { answers }))).status).toBe(202)
    }
    if (event.kind === 'model_message' && snapshot.runs.at(-1)?.entries.length === 2) over.abort()
  }
  expect(snapshot?.runs).toHaveLength(2)
  expect(snapshot?.runs[1]?.calls).toMatchObject([{ callId: 'call_1', status: 'completed' }])
})

test('the events of a conversation end when it is deleted; then there is none', async () => {
  const { log, requests, events } = servers(new ScriptedModel().says('One.')).sessions()
  await requests(post('/threads/t1/messages', { text: '1' }))
  const address = `${BASE}/threads/t1/events`
  const read = textOf(await events(new Request(address)))
  const sessions = new Sessions({ log, harness: harnessOf({ model: new ScriptedModel() }) })
  onTestFinished(() => sessions.close())
  await sessions.delete('t1')
  expect(await read).toContain('event: run_started')
  expect((await events(new Request(address))).status).toBe(404)
  expect((await requests(post('/threads/t1/messages', { text: 'Again?' }))).status).toBe(202)
  expect(await textOf(await events(new Request(`${address}?wait=5`)))).not.toContain('"text":"1"')
})
