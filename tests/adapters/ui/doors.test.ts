import { once } from 'node:events'
import { describe, expect, onTestFinished, test } from 'vitest'
import { HarnessError, memoryLog } from 'thinharness'
import type { ToolContext } from 'thinharness'
import { Sessions } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { createHandlers, localOnly } from 'thinharness/ui'
import type { HandlerOptions, Handlers } from 'thinharness/ui'
import { harnessOf, tool } from '../../harness/support.js'
import { collect } from '../../support/collect.js'

const KINDS = ['sessions', 'harness'] as const
const owner = (): object => ({ resourceId: 'ann' })

function served(
  kind: (typeof KINDS)[number],
  { model, onCall, ...options }: Partial<HandlerOptions> & { model: ScriptedModel; onCall?: (c: ToolContext) => void },
) {
  const log = memoryLog()
  const pay = tool('pay', (_: unknown, context) => onCall?.(context), { requiresApproval: true })
  const harness = harnessOf({ model, log, tools: [pay, tool('look', (_: unknown, context) => onCall?.(context))] })
  const sessions = new Sessions({ log, harness })
  onTestFinished(() => sessions.close())
  const handlers = createHandlers(kind === 'harness' ? { harness, log, ...options } : { sessions, ...options })
  return { log, handlers, sessions }
}

function post(path: string, body: object | string, headers: Readonly<Record<string, string>> = {}): Request {
  return new Request(`http://app.test/api${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
}

/** A request that begins a run, for each handler. */
const BEGIN: Readonly<
  Record<string, (handlers: Handlers, headers: Readonly<Record<string, string>>) => Promise<Response>>
> = {
  requests: ({ requests }, headers) => requests(post('/threads/t1/messages', { text: 'Hi.' }, headers)),
  aiSdk: ({ aiSdk }, headers) =>
    aiSdk(
      post(
        '/chat',
        { id: 't1', messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'Hi.' }] }] },
        headers,
      ),
    ),
  agUi: ({ agUi }, headers) =>
    agUi(
      post(
        '/agui',
        { threadId: 't1', runId: 'r', messages: [{ id: 'm', role: 'user', content: 'Hi.' }], tools: [], context: [] },
        headers,
      ),
    ),
  responses: ({ responses }, headers) => responses(post('/responses', { input: 'Hi.' }, headers)),
}

describe.each(Object.keys(BEGIN))('a request that a page sends to %s', (name) => {
  const cookie = { cookie: 'session=ann' }
  const begin = async (headers: Readonly<Record<string, string>>, options: Partial<HandlerOptions> = {}) => {
    const { handlers, log } = served('sessions', {
      model: new ScriptedModel().says('Hello.'),
      authorize: ({ headers: given }) => given.get('cookie') === 'session=ann' && owner(),
      ...options,
    })
    const response = await BEGIN[name]?.(handlers, { ...cookie, ...headers })
    await response?.text()
    return { status: response?.status, runs: (await collect(log.list({ kind: 'run' }))).length }
  }

  test.each([
    ['a form of another site', { 'content-type': 'text/plain', origin: 'https://evil.test' }],
    ['a form of the own site', { 'content-type': 'application/x-www-form-urlencoded', origin: 'http://app.test' }],
    ['a file form', { 'content-type': 'multipart/form-data; boundary=x' }],
    ['a text that names no type', { 'content-type': 'text/plain;charset=UTF-8' }],
    ['JSON of another site', { origin: 'https://evil.test' }],
    ['a sandboxed page', { origin: 'null' }],
    ['another host of the same site', { origin: 'https://blog.app.test', 'sec-fetch-site': 'same-site' }],
    ['another port', { origin: 'http://app.test:8080' }],
    ['a browser that hides the origin', { 'sec-fetch-site': 'cross-site' }],
  ])('begins nothing: %s', async (_, headers) => {
    const { status, runs } = await begin(headers)
    expect([[403, 415].includes(status ?? 0), runs]).toEqual([true, 0])
  })

  test.each([
    ['a program', {}],
    ['the own origin', { origin: 'http://app.test' }],
    [
      'the own origin behind a proxy that changes the host',
      { origin: 'https://shop.test', 'sec-fetch-site': 'same-origin' },
    ],
    ['JSON of another kind', { 'content-type': 'application/vnd.api+json; charset=utf-8' }],
  ])('begins a run: %s', async (_, headers) => {
    expect(await begin(headers)).toEqual({ status: name === 'requests' ? 202 : 200, runs: 1 })
  })

  test('begins a run: an origin that the host names', async () => {
    const { runs } = await begin({ origin: 'https://shop.test' }, { origins: ['https://shop.test'] })
    expect(runs).toBe(1)
  })
})

describe('localOnly', () => {
  const answer = (headers: Readonly<Record<string, string>>, base = 'http://localhost:3000'): number => {
    const access = localOnly(new Request(`${base}/threads`, { headers }))
    return access instanceof Response ? access.status : 200
  }

  test.each([
    ['http://localhost:3000', {}],
    ['http://127.0.0.1', {}],
    ['http://[::1]:80', {}],
    ['http://localhost:3000', { origin: 'http://localhost:3000' }],
  ])('serves %s %j', (base, headers) => {
    expect(answer(headers, base)).toBe(200)
  })

  test.each<Readonly<Record<string, string>>>([
    { host: 'shop.example' },
    { host: 'localhost.example' },
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: 'http://localhost:8080' },
    { forwarded: 'for=192.0.2.1' },
    { via: '1.1 proxy' },
    { 'x-real-ip': '192.0.2.1' },
    ...['for', 'host', 'proto', 'port', 'anything'].map((name) => ({ [`x-forwarded-${name}`]: '192.0.2.1' })),
  ])('refuses %j', (headers) => {
    expect(answer(headers)).toBe(403)
  })

  test('is the default, with a warning', async () => {
    const warning = once(process, 'warning')
    const { handlers } = served('sessions', { model: new ScriptedModel() })
    expect(String((await warning)[0])).toContain('Write `authorize: localOnly`')
    const forwarded = { headers: { 'x-forwarded-for': '192.0.2.1' } }
    expect((await handlers.requests(new Request('http://localhost/threads', forwarded))).status).toBe(403)
  })
})

describe.each(KINDS)('over %s', (kind) => {
  const whole = async (answer: Promise<Response>): Promise<unknown> => {
    const response = await answer
    return [response.status, await response.text(), [...response.headers]]
  }

  test('what is refused answers like what does not exist, to the byte', async () => {
    const { handlers } = served(kind, {
      model: new ScriptedModel().says('Hello.'),
      authorize: ({ headers }) => headers.get('x-user') === 'ann' && owner(),
    })
    await BEGIN['requests']?.(handlers, { 'x-user': 'ann' })
    const get = (path: string, user: string) => new Request(`http://app.test${path}`, { headers: { 'x-user': user } })
    for (const path of ['/threads/t1/messages', '/threads/t1/events', '/threads/t2/messages', '/runs/r/events']) {
      const handler = path.endsWith('/events') ? handlers.events : handlers.requests
      const missing = await whole(handler(get(path.replace(/t\d|\/r\//, '/none/'), 'ann')))
      expect(await whole(handler(get(path, 'mallory')))).toEqual(missing)
    }
  })

  test.each<unknown>([{ decision: 'allow', tool: '*' }, 'tool', 'category', true, null])(
    'an answer does not release later calls unless the host allows it: %j',
    async (remember) => {
      const model = new ScriptedModel().calls('pay').says('Paid.')
      const { handlers, sessions } = served(kind, { model, authorize: owner })
      await BEGIN['requests']?.(handlers, {})
      const chat = await sessions.open('t1')
      await chat.whenIdle()
      const answers = [{ callId: 'call_1', approved: true, remember }]
      for (const request of [
        () => handlers.requests(post('/threads/t1/answers', { answers })),
        () => handlers.aiSdk(post('/chat', { id: 't1', messages: [], answers })),
      ]) {
        const response = await request()
        expect([response.status, await response.json()]).toMatchObject([
          400,
          { message: expect.stringContaining('without `remember`') as string },
        ])
      }
      expect([chat.pending.length, chat.grants]).toEqual([1, []])
    },
  )

  test('what the host allows to be remembered is remembered, and no more', async () => {
    const model = new ScriptedModel().calls('pay').says('Paid.')
    const { handlers, sessions } = served(kind, { model, authorize: owner, remember: ['tool'] })
    await BEGIN['requests']?.(handlers, {})
    await (await sessions.open('t1')).whenIdle()
    const answer = (remember: unknown) =>
      handlers.requests(post('/threads/t1/answers', { answers: [{ callId: 'call_1', approved: true, remember }] }))
    expect((await answer({ decision: 'allow', tool: 'pay' })).status).toBe(400)
    expect((await answer('tool')).status).toBe(202)
  })

  test('metadata of a page has a name of its own; that of the host is metadata of the run', async () => {
    const { handlers, log } = served(kind, {
      model: new ScriptedModel().says('Hello.'),
      authorize: () => ({ resourceId: 'ann', metadata: { tenant: 'acme' } }),
    })
    const given = { tenant: 'other', role: 'admin', resourceId: 'bob', conversation_id: 't2' }
    await handlers.requests(post('/threads/t1/messages', { text: 'Hi.', metadata: given }))
    const [run] = await collect(log.list({ kind: 'run' }))
    expect(run?.metadata).toEqual({ tenant: 'acme', resourceId: 'ann', conversation_id: 't1', page: given })
  })

  test('dependencies of a request are those of its run', async () => {
    const seen: unknown[] = []
    const { handlers, sessions } = served(kind, {
      model: new ScriptedModel().calls('look').calls('pay').says('Paid.'),
      onCall: ({ deps }) => void seen.push(deps),
      authorize: ({ headers }) => ({ resourceId: 'ann', deps: headers.get('x-deps') }),
    })
    await BEGIN['requests']?.(handlers, { 'x-deps': 'one' })
    await (await sessions.for({ resourceId: 'ann' }).open('t1')).whenIdle()
    const answers = [{ callId: 'call_2', approved: true }]
    await handlers.requests(post('/threads/t1/answers', { answers }, { 'x-deps': 'two' }))
    await (await sessions.for({ resourceId: 'ann' }).open('t1')).whenIdle()
    expect(seen).toEqual(['one', 'two'])
  })
})

describe('what is wrong with a request is said, and nothing else', () => {
  const open = (): ReturnType<typeof served> =>
    served('sessions', { model: new ScriptedModel().always({ text: 'Hello.' }), authorize: owner })

  test.each(['[', '{"a":'])('a body of any depth is refused: %s', async (part) => {
    const { handlers, log } = open()
    const deep =
      part === '[' ? `${'['.repeat(50_000)}${']'.repeat(50_000)}` : `${part.repeat(50_000)}1${'}'.repeat(50_000)}`
    for (const [handler, path, body] of [
      ['requests', '/threads/t1/messages', `{"text":"Hi.","metadata":${deep}}`],
      ['aiSdk', '/chat', `{"id":"t1","messages":[{"id":"m","role":"user","parts":${deep}}]}`],
      ['agUi', '/agui', `{"threadId":"t1","runId":"r","messages":[],"state":${deep}}`],
      ['responses', '/responses', `{"input":"Hi.","metadata":${deep}}`],
    ] as const)
      expect((await handlers[handler](post(path, body))).status).toBe(400)
    expect(await collect(log.list({ kind: 'run' }))).toEqual([])
  })

  test.each(['constructor', '__proto__', 'toString'])(
    'a mode that there is not is refused, and the queue goes on: %s',
    async (mode) => {
      const { handlers, sessions } = open()
      const send = (body: object): Promise<Response> => handlers.requests(post('/threads/t1/messages', body))
      expect((await send({ text: 'Hi.', mode })).status).toBe(400)
      expect((await handlers.requests(post('/threads/t1/change', { mode }))).status).toBe(400)
      expect((await send({ text: 'Hi.' })).status).toBe(202)
      const chat = await sessions.open('t1')
      await chat.whenIdle()
      expect(chat.snapshot.runs.map(({ status }) => status)).toEqual(['completed'])
    },
  )

  test('a stranger does not learn the names of tools and models', async () => {
    const { handlers } = served('sessions', {
      model: new ScriptedModel(),
      authorize: () => null,
      clientTools: true,
      responses: { models: { secret: 'default' } },
    })
    const call = (name: string) => ({ name, description: 'x', parameters: { type: 'object' } })
    const agUi = async (name: string): Promise<string> => {
      const messages = [{ id: 'm', role: 'user', content: 'Hi.' }]
      return (await handlers.agUi(post('/agui', { threadId: 't1', runId: 'r', messages, tools: [call(name)] }))).text()
    }
    expect(await agUi('pay')).toBe(await agUi('other'))
    const ask = async (body: object): Promise<string> =>
      (await handlers.responses(post('/responses', { input: 'Hi.', ...body }))).text()
    const tool = (name: string) => ({ tools: [{ type: 'function', ...call(name) }] })
    expect(await ask(tool('pay'))).toBe(await ask(tool('other')))
    expect(await ask({ model: 'unknown' })).toBe(await ask({ model: 'secret' }))
  })

  test('the words of an error of the host stay on the server', async () => {
    const { sessions } = open()
    const broken = Object.assign(Object.create(null) as Sessions, {
      log: sessions.log,
      for: () => {
        throw new HarnessError('invalid_options', 'The pool at 10.0.0.1 has no database `people`.')
      },
    })
    const { requests } = createHandlers({ sessions: broken, authorize: owner })
    const response = await requests(post('/threads/t1/messages', { text: 'Hi.' }))
    expect([response.status, await response.text()]).toEqual([400, expect.not.stringContaining('10.0.0.1') as string])
  })

  test('nothing that a person reads is kept by a cache', async () => {
    const { handlers, sessions } = open()
    const begun = await BEGIN['aiSdk']?.(handlers, {})
    await begun?.text()
    await (await sessions.open('t1')).whenIdle()
    const get = (path: string): Request => new Request(`http://app.test/api${path}`)
    const runId = (await sessions.open('t1')).snapshot.runs[0]?.runId ?? ''
    const answers = await Promise.all([
      handlers.events(get('/threads/t1/events')),
      handlers.events(get(`/runs/${runId}/events`)),
      handlers.requests(get('/threads/t1/messages')),
      handlers.aiSdk(get('/chat/t1/stream?replay=1')),
      handlers.responses(get(`/responses/${runId}?stream=true`)),
    ])
    for (const { headers, body } of answers) {
      expect(headers.get('cache-control')).toMatch(/^no-store\b/)
      await body?.cancel()
    }
  })
})
