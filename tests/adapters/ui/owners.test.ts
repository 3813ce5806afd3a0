import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { memoryLog } from 'thinharness'
import type { Harness, LogStore } from 'thinharness'
import { Sessions } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { createHandlers } from 'thinharness/ui'
import type { Handlers } from 'thinharness/ui'
import { harnessOf, tool } from '../../harness/support.js'
import { collect } from '../../support/collect.js'
import { rounds, timeLimit } from '../../support/length.js'

const BASE = 'http://app.test/api'
const SECRET = 'the-words-of-alice'

interface World {
  readonly log: LogStore
  readonly harness: Harness
  readonly sessions: Sessions
  readonly handlers: Handlers
}

/** Handlers for users who say who they are, over sessions or over a harness. */
function world(over: 'sessions' | 'harness' = 'sessions'): World {
  const log = memoryLog()
  const model = new ScriptedModel().always(({ messages }) => {
    const said = JSON.stringify(messages)
    if (said.includes('Now pay.') && !said.includes('paid')) return { parts: [{ type: 'call', name: 'pay' }] }
    return { parts: [{ type: 'text', text: said.includes(SECRET) ? SECRET : 'Yes.' }] }
  })
  const harness = harnessOf({ model, log, tools: [tool('pay', () => 'paid', { requiresApproval: true })] })
  const sessions = new Sessions({ log, harness })
  onTestFinished(() => sessions.close())
  const authorize = (request: Request) => ({ resourceId: request.headers.get('x-user') ?? '' })
  const served = over === 'sessions' ? { sessions } : { harness, log }
  return { log, harness, sessions, handlers: createHandlers({ ...served, authorize, maxStreamMs: 20 }) }
}

interface Sent {
  readonly method?: 'GET' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

function requestOf(user: string, path: string, { method = 'GET', headers = {}, body }: Sent = {}): Request {
  return new Request(`${BASE}${path}`, {
    method,
    headers: { 'x-user': user, 'content-type': 'application/json', ...headers },
    ...(method === 'POST' && { body: JSON.stringify(body ?? {}) }),
  })
}

async function posted<Body>(answer: Promise<Response>): Promise<Body> {
  const response = await answer
  expect(response.status).toBeLessThan(300)
  return (await response.json()) as Body
}

/** Alice has a run that has ended, one that waits and one that the host began; each mentions what only she may read. */
async function ofAlice({ sessions, harness, handlers, log }: World) {
  const begin = async (threadId: string, text: string): Promise<string> => {
    const body = { messageId: `m-${threadId}`, text: `${text} ${SECRET}` }
    const sent = handlers.requests(requestOf('alice', `/threads/${threadId}/messages`, { method: 'POST', body }))
    const { runId } = await posted<{ readonly runId: string }>(sent)
    await (await sessions.for({ resourceId: 'alice' }).open(threadId)).whenIdle()
    return runId
  }
  const runIds = [await begin('alice-1', 'Hello.'), await begin('alice-2', 'Now pay.')]
  const metadata = { resourceId: 'alice' }
  runIds.push((await harness.run(`By the host: ${SECRET}`, { metadata, log })).runId)
  const taken = { ...metadata, conversation_id: 'taken' }
  runIds.push((await harness.run(`With a name: ${SECRET}`, { metadata: taken, log })).runId)
  // Of a conversation that is gone, and was forked: its run is kept.
  runIds.push(await begin('gone', 'Hello.'))
  const owned = sessions.for({ resourceId: 'alice' })
  await owned.fork('gone', { threadId: 'alice-3' })
  await owned.delete('gone')
  return { runIds, threadIds: ['alice-1', 'alice-2', 'alice-3', 'gone', 'taken'] }
}

describe('a cursor of another conversation', () => {
  const ways = {
    'in ?after=': (cursor: string) => requestOf('mallory', `/threads/mine/events?after=${cursor}`),
    'in Last-Event-ID': (cursor: string) =>
      requestOf('mallory', '/threads/mine/events', { headers: { 'last-event-id': cursor } }),
    'with ?wait=': (cursor: string) => requestOf('mallory', `/threads/mine/events?after=${cursor}&wait=0`),
  }

  test.each(Object.entries(ways))('is none: %s', async (_, request) => {
    const place = world()
    const { runIds } = await ofAlice(place)
    await (await place.sessions.for({ resourceId: 'mallory' }).create({ threadId: 'mine' })).release()
    for (const runId of runIds) {
      const response = await place.handlers.events(request(`999.${runId}.0`))
      const { message } = (await response.json()) as { readonly message: string }
      expect([response.status, message]).toEqual([400, expect.stringContaining('to be the cursor of an event')])
    }
  })

  test('is refused by a chat too, and one of an own run is not', async () => {
    const { sessions } = world()
    const [mine, other] = [await sessions.open('mine'), await sessions.open('other')]
    const { runId } = await (await mine.send('Hello.')).done
    await expect(collect(other.events({ after: `1.${runId ?? ''}.0`, live: false }))).rejects.toMatchObject({
      code: 'invalid_options',
    })
    const events = await collect(mine.events({ after: `1.${runId ?? ''}.0`, live: false }))
    expect(events.map(({ kind }) => kind)).toContain('run_completed')
  })
})

test.each(['sessions', 'harness'] as const)(
  'a request whose body ends late opens nothing before it has ended: %s',
  async (over) => {
    const { handlers } = world(over)
    let send: (text: string) => void = () => undefined
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        send = (text) => {
          controller.enqueue(new TextEncoder().encode(text))
          controller.close()
        }
      },
    })
    const late = handlers.requests(
      new Request(`${BASE}/threads/plan/messages`, {
        ...{ method: 'POST', body, duplex: 'half' },
        headers: { 'x-user': 'mallory', 'content-type': 'application/json' },
      }),
    )
    const text = { text: 'Mine.' }
    await posted(handlers.requests(requestOf('alice', '/threads/plan/messages', { method: 'POST', body: text })))
    send(JSON.stringify({ text: 'No, mine.' }))
    expect((await late).status).toBe(404)
    const read = await handlers.requests(requestOf('alice', '/threads/plan/messages'))
    expect([read.status, await read.text()]).toEqual([200, expect.not.stringContaining('No, mine.')])
  },
)

test('the same Idempotency-Key of two owners begins two conversations', async () => {
  const { handlers } = world()
  const ask = (user: string) =>
    handlers.responses(
      requestOf(user, '/responses', { method: 'POST', headers: { 'idempotency-key': '1' }, body: { input: 'Hi.' } }),
    )
  const [alice, bob, again] = [await ask('alice'), await ask('bob'), await ask('alice')]
  expect([alice.status, bob.status, again.status]).toEqual([200, 200, 200])
  const ids = await Promise.all([alice, bob, again].map(async (each) => ((await each.json()) as { id: string }).id))
  expect(ids[0]).toBe(ids[2])
  expect(ids[1]).not.toBe(ids[0])
})

const text = fc.constantFrom('Hello.', 'Now pay.')

/** A request of somebody else: the ids of Alice in every place that takes one. */
function anyRequest(ids: { readonly runIds: readonly string[]; readonly threadIds: readonly string[] }) {
  const threadId = fc.constantFrom('mine', 'other', ...ids.threadIds)
  const runId = fc.constantFrom('run_0', ...ids.runIds)
  const messageId = fc.constantFrom('m1', ...ids.threadIds.map((id) => `m-${id}`))
  const stretch = fc.constantFrom('', ':2')
  const cursor = fc.oneof(
    fc.constantFrom('0', '1', '999'),
    fc.tuple(fc.nat(99), runId, fc.nat(9)).map((parts) => parts.join('.')),
    fc.tuple(runId, fc.nat(9), runId).map(([one, seq, other]) => `${one}:${seq},${other}:0`),
  )
  const answers = fc.constant([{ callId: 'call_1', approved: true }])
  const optional = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(value, { nil: undefined })
  const query = fc
    .record({
      after: optional(cursor),
      wait: optional(fc.constant('0')),
      children: optional(fc.constant('1')),
      replay: optional(fc.constant('1')),
      stream: optional(fc.constant('true')),
      format: optional(fc.constantFrom('ui', 'agui', 'native')),
      before: optional(threadId.map((id) => `2999-01-01T00:00:00.000Z/${id}`)),
    })
    .map((members) => {
      const given = Object.entries(members).filter((each): each is [string, string] => each[1] !== undefined)
      return `?${new URLSearchParams(given).toString()}`
    })
  const headers = fc
    .record({ 'last-event-id': optional(cursor), 'idempotency-key': optional(messageId) })
    .map((all) => Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)))
  const get = (handler: keyof Handlers, path: fc.Arbitrary<string>) =>
    fc.tuple(path, query, headers).map(([where, asked, given]) => ({
      handler,
      path: where + asked,
      sent: { headers: given as Readonly<Record<string, string>> },
    }))
  const post = (handler: keyof Handlers, path: fc.Arbitrary<string>, body: fc.Arbitrary<unknown>) =>
    fc.tuple(path, headers, body).map(([where, given, content]) => ({
      handler,
      path: where,
      sent: { method: 'POST', headers: given, body: content } as Sent,
    }))
  const message = fc.record({ text, messageId, whenBusy: fc.constantFrom('queue', 'steer', 'decline', 'reject') })
  const uiMessage = fc.record({
    id: messageId,
    role: fc.constantFrom('user', 'assistant'),
    parts: fc.tuple(text).map(([each]) => [{ type: 'text', text: each }]),
  })
  return fc.oneof(
    get(
      'events',
      threadId.map((id) => `/threads/${id}/events`),
    ),
    get(
      'events',
      runId.map((id) => `/runs/${id}/events`),
    ),
    get(
      'aiSdk',
      threadId.map((id) => `/chat/${id}/stream`),
    ),
    get(
      'requests',
      threadId.map((id) => `/threads/${id}/messages`),
    ),
    get(
      'requests',
      runId.map((id) => `/runs/${id}/input`),
    ),
    get('requests', fc.constant('/threads')),
    get(
      'responses',
      fc.tuple(runId, stretch).map((id) => `/responses/${id.join('')}`),
    ),
    post(
      'responses',
      runId.map((id) => `/responses/${id}/cancel`),
      fc.constant({}),
    ),
    post(
      'requests',
      threadId.map((id) => `/threads/${id}/messages`),
      message,
    ),
    post(
      'requests',
      threadId.map((id) => `/threads/${id}/answers`),
      fc.record({ answers }),
    ),
    post(
      'requests',
      threadId.map((id) => `/threads/${id}/change`),
      fc.record({ title: text, remove: fc.tuple(messageId) }),
    ),
    post(
      'requests',
      fc.tuple(threadId, fc.constantFrom('stop', 'regenerate')).map((each) => `/threads/${each.join('/')}`),
      fc.constant({}),
    ),
    post(
      'requests',
      fc.tuple(runId, fc.constantFrom('input', 'stop', 'recover', 'answers')).map((each) => `/runs/${each.join('/')}`),
      fc.record({ text, answers, messageId }),
    ),
    post(
      'aiSdk',
      fc.constant('/chat'),
      fc.record({
        id: threadId,
        messages: fc.tuple(uiMessage),
        answers: optional(answers),
        trigger: optional(fc.constant('regenerate-message')),
        messageId: optional(fc.oneof(messageId, runId)),
      }),
    ),
    post(
      'agUi',
      fc.constant('/agui'),
      fc.record({
        threadId,
        runId,
        messages: fc.tuple(fc.record({ id: messageId, role: fc.constant('user'), content: text })),
        resume: optional(fc.constant([{ interruptId: 'call_1', status: 'resolved', payload: { approved: true } }])),
      }),
    ),
    post(
      'responses',
      fc.constant('/responses'),
      fc.record({
        input: text,
        previous_response_id: optional(fc.tuple(runId, stretch).map((id) => id.join(''))),
        answers: optional(answers),
        background: fc.boolean(),
        stream: fc.boolean(),
      }),
    ),
  )
}

test(
  'no thread, run, cursor, key or id that somebody else sends reaches what is of another owner',
  async () => {
    const { numRuns, ...rest } = rounds(300)
    const place = world()
    const { log, handlers } = place
    const ids = await ofAlice(place)
    const eventsOfAlice = async (): Promise<string> => {
      const logs = [
        ...['alice-1', 'alice-2', 'alice-3'].map((id) => log.read({ kind: 'thread', id })),
        ...ids.runIds.map((id) => log.read({ kind: 'run', id })),
      ]
      return JSON.stringify(await Promise.all(logs.map((each) => collect(each as AsyncIterable<unknown>))))
    }
    const before = await eventsOfAlice()
    expect(before).toContain(SECRET)
    const seen = new Set<number>()
    const property = fc.asyncProperty(anyRequest(ids), async ({ handler, path, sent }) => {
      const response = await handlers[handler](requestOf('mallory', path, sent))
      seen.add(response.status)
      expect(await response.text().catch(() => '')).not.toContain(SECRET)
      expect(response.status).not.toBe(500)
    })
    await fc.assert(property, { numRuns, ...rest })
    expect(await eventsOfAlice()).toBe(before)
    expect([...seen].sort()).toEqual(expect.arrayContaining([200, 202, 400, 404]))
  },
  timeLimit(60_000),
)
