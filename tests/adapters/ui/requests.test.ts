import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { fileLog, memoryLog } from 'thinharness'
import type { LogStore } from 'thinharness'
import { Sessions } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { createHandlers } from 'thinharness/ui'
import type { HandlerOptions, Handlers } from 'thinharness/ui'
import { harnessOf, tool } from '../../harness/support.js'
import { gate } from '../../session/support.js'
import { collect } from '../../support/collect.js'
import { temporaryFolder } from '../../support/folder.js'
import { slowLog } from './support/slow-log.js'

interface Served extends Handlers {
  readonly log: LogStore
}

interface Setup {
  readonly model: ScriptedModel
  readonly options?: Partial<HandlerOptions>
  readonly log?: LogStore
}

const pay = tool('pay', () => 'paid', { requiresApproval: true })

function served(kind: 'sessions' | 'harness', { model, options, log = memoryLog() }: Setup): Served {
  const tools = [pay, tool('look', () => 'seen')]
  if (kind === 'harness') {
    const harness = harnessOf({ model, tools, log })
    onTestFinished(() => harness.close())
    return { log, ...createHandlers({ harness, log, ...options }) }
  }
  const sessions = new Sessions({ log, harness: harnessOf({ model, tools }) })
  onTestFinished(() => sessions.close())
  return { log, ...createHandlers({ sessions, ...options }) }
}

const BASE = 'http://localhost/api'

function post(path: string, body: object | string = {}): Request {
  return new Request(`${BASE}${path}`, { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) })
}

interface Answered {
  readonly status: number
  readonly code?: string
  readonly message?: string
  readonly runId?: string
  readonly pending?: readonly { readonly callId: string }[]
  readonly messages?: readonly unknown[]
}

async function asked({ requests }: Handlers, request: Request): Promise<Answered> {
  const response = await requests(request)
  const body =
    response.headers.get('content-type')?.startsWith('application/json') === true ? await response.json() : {}
  return { ...(body as object), status: response.status }
}

/** Reads a run to its pause or end; the status that the stream ends with. */
async function followed({ events }: Handlers, runId = ''): Promise<string | undefined> {
  const text = await (await events(new Request(`${BASE}/runs/${runId}/events`))).text()
  return /event: end\ndata: \{"status":"(\w+)"/.exec(text)?.[1]
}

/** A model whose first reply waits until `release`. */
function waiting(): { readonly model: ScriptedModel; readonly release: () => void } {
  const { opened, open: release } = gate()
  const model = new ScriptedModel().replies(async () => {
    await opened
    return 'One.'
  })
  model.says('Two.').says('Three.')
  return { model, release }
}

describe.each(['sessions', 'harness'] as const)('requests over %s', (kind) => {
  test('RQ-06 a message that is sent twice begins one run', async () => {
    const server = served(kind, { model: new ScriptedModel().says('Hello.') })
    const body = { text: 'Hi.', messageId: 'm1' }
    const [first, second] = [
      await asked(server, post('/threads/t1/messages', body)),
      await asked(server, post('/threads/t1/messages', body)),
    ]
    expect([first.status, second.status, second.runId]).toEqual([202, 202, first.runId])
    expect(await followed(server, first.runId)).toBe('completed')
    expect((await asked(server, new Request(`${BASE}/threads/t1/messages`))).status).toBe(200)
  })

  test('RQ-08 RQ-22 a body that is too large, no JSON or of another form is refused with a sentence', async () => {
    const server = served(kind, { model: new ScriptedModel(), options: { maxBodyBytes: 100 } })
    expect(await asked(server, post('/threads/t1/messages', 'x'.repeat(101)))).toMatchObject({
      status: 413,
      code: 'body_too_large',
    })
    expect(await asked(server, post('/threads/t1/messages', 'x'))).toMatchObject({
      status: 400,
      message: 'Expected the body to be JSON.',
    })
    expect(await asked(server, post('/threads/t1/messages', { content: [{ type: 'odd' }] }))).toMatchObject({
      ...{ status: 400, code: 'invalid_request' },
      message:
        'Expected `content[0]` to be a part of type text, image, file or audio with its members, got {"type":"odd"}.',
    })
    expect((await server.requests(new Request(`${BASE}/threads/t1/answers`))).status).toBe(405)
  })

  test('RQ-09 links are refused unless the host allows them', async () => {
    const content = [{ type: 'image', url: 'https://shop.example/cup.png' }]
    const refusing = served(kind, { model: new ScriptedModel() })
    expect(await asked(refusing, post('/threads/t1/messages', { content }))).toMatchObject({ status: 400 })
    const allowUrl = ({ hostname }: URL): boolean => hostname === 'shop.example'
    const allowing = served(kind, { model: new ScriptedModel().says('A cup.'), options: { allowUrl } })
    expect(await asked(allowing, post('/threads/t1/messages', { content }))).toMatchObject({ status: 202 })
  })

  test('RQ-11 RQ-12 RQ-13 XL-09 answers are checked by the run, and given once', async () => {
    const server = served(kind, { model: new ScriptedModel().calls('pay').says('Paid.') })
    const { runId } = await asked(server, post('/threads/t1/messages', { text: 'Pay.' }))
    expect(await followed(server, runId)).toBe('paused')
    const answer = (approved: unknown) => post(`/runs/${runId}/answers`, { answers: [{ callId: 'call_1', approved }] })
    expect(await asked(server, answer('yes'))).toMatchObject({ status: 422, code: 'invalid_answer' })
    expect(await asked(server, answer(true))).toMatchObject({ status: 202, runId })
    expect(await asked(server, answer(true))).toMatchObject({ status: 202, runId })
    expect(await asked(server, answer(false))).toMatchObject({ status: 409, code: 'stale_answer' })
  })

  test('RQ-17 a run is stopped: while it waits, and when it has ended', async () => {
    const server = served(kind, { model: new ScriptedModel().calls('pay') })
    const { runId } = await asked(server, post('/threads/t1/messages', { text: 'Pay.' }))
    expect(await followed(server, runId)).toBe('paused')
    expect((await asked(server, post(`/runs/${runId}/stop`))).status).toBe(202)
    expect(await followed(server, runId)).toBe('cancelled')
    expect((await asked(server, post(`/runs/${runId}/stop`))).status).toBe(202)
  })

  test('RQ-17 a stop that comes behind a message stops that message, also while it is being stored', async () => {
    const model = new ScriptedModel().says('Hello.').always({ calls: [{ name: 'look' }] })
    const server = served(kind, { model, log: slowLog(2) })
    const { runId } = await asked(server, post('/threads/t1/messages', { text: 'Hi.' }))
    expect(await followed(server, runId)).toBe('completed')
    for (const ticks of [0, 1, 3, 6]) {
      const sending = asked(server, post('/threads/t1/messages', { text: 'Look.' }))
      for (let tick = 0; tick < ticks; tick += 1) await new Promise(setImmediate)
      expect((await asked(server, post('/threads/t1/stop'))).status).toBe(202)
      await sending
    }
    const [last, ...others] = (await collect(server.log.list())).map(({ status }) => status).reverse()
    expect([last, new Set(others)]).toEqual(['completed', new Set(others.length > 0 ? ['cancelled'] : [])])
  })

  test.each([1, 2, 4, 8])(
    'RQ-17 a stop behind the first message of a new conversation stops it (%i)',
    async (ticks) => {
      const model = new ScriptedModel().always({ calls: [{ name: 'look' }] })
      const server = served(kind, { model, log: slowLog(2) })
      const sending = asked(server, post('/threads/t1/messages', { text: 'Look.' }))
      for (let tick = 0; tick < ticks; tick += 1) await new Promise(setImmediate)
      expect((await asked(server, post('/threads/t1/stop'))).status).toBe(202)
      await sending
      const ends = (await collect(server.log.list())).map(({ status }) => status)
      expect(new Set(ends)).toEqual(new Set(ends.length > 0 ? ['cancelled'] : []))
    },
  )

  test('a message is answered again by a new run; not while a run is in progress, nor one that is not there', async () => {
    const { model, release } = waiting()
    const server = served(kind, { model })
    const again = (body: object): Promise<unknown> => asked(server, post('/threads/t1/regenerate', body))
    expect(await again({})).toMatchObject({ status: 404 })
    const { runId } = await asked(server, post('/threads/t1/messages', { text: 'Go.', messageId: 'm1' }))
    expect(await again({})).toMatchObject({ status: 409, code: 'busy' })
    release()
    expect(await followed(server, runId)).toBe('completed')
    expect(await again({ messageId: 5 })).toMatchObject({ status: 400 })
    expect(await again({ messageId: 'm9' })).toMatchObject({ status: 404 })
    const { runId: other, status } = await asked(server, post('/threads/t1/regenerate', { messageId: 'm1' }))
    expect([status, other === runId]).toEqual([202, false])
    expect(await followed(server, other)).toBe('completed')
  })

  test('RQ-15 RQ-16 a message is given to the run in progress; an ended run takes none', async () => {
    const { model, release } = waiting()
    const server = served(kind, { model })
    const { runId } = await asked(server, post('/threads/t1/messages', { text: 'Go.' }))
    expect(await asked(server, post(`/runs/${runId}/input`, { text: 'Faster.' }))).toMatchObject({
      status: 202,
      kept: false,
    })
    release()
    expect(await followed(server, runId)).toBe('completed')
    expect(await asked(server, post(`/runs/${runId}/input`, { text: 'Faster.' }))).toMatchObject({ status: 409 })
    expect(await asked(server, new Request(`${BASE}/runs/${runId}/input`))).toMatchObject({ status: 200, messages: [] })
  })

  test('RQ-18 UI-32 XL-04 a reader that goes away stops nothing', async () => {
    const { model, release } = waiting()
    const server = served(kind, { model })
    const { runId } = await asked(server, post('/threads/t1/messages', { text: 'Go.' }))
    const response = await server.events(new Request(`${BASE}/runs/${runId}/events`))
    await response.body?.cancel()
    release()
    expect(await followed(server, runId)).toBe('completed')
  })

  test('RQ-18 with `stopOnDisconnect` the request that began the run stops it by going away, and no other does', async () => {
    const { model, release } = waiting()
    const server = served(kind, { model, options: { stopOnDisconnect: true } })
    const message = { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Go.' }] }
    const begun = await server.aiSdk(post('/chat', { id: 't1', messages: [message] }))
    const reader = (begun.body as ReadableStream<Uint8Array>).getReader()
    const next = async (): Promise<string> => new TextDecoder().decode((await reader.read()).value)
    const first = await next()
    const told = first.includes('messageId') ? first : first + (await next())
    const [, runId = ''] = /"messageId":"([^"]+)"/.exec(told) ?? []
    // The same message again attaches to the run, and so does a reader.
    const attached = await server.aiSdk(post('/chat', { id: 't1', messages: [message] }))
    await attached.body?.cancel()
    const reading = await server.events(new Request(`${BASE}/runs/${runId}/events`))
    await reading.body?.cancel()
    await vi.waitFor(() => expect(model.requests).toHaveLength(1))
    expect(await asked(server, new Request(`${BASE}/threads/t1/messages`))).toMatchObject({ status: 200 })
    const ends = followed(server, runId)
    await reader.cancel()
    expect(await ends).toBe('cancelled')
    release()
  })

  test('SS-14 the cursor is that of `Last-Event-ID`, else of `?after=`; at or behind the end there is nothing', async () => {
    const server = served(kind, { model: new ScriptedModel().says('Hello.') })
    const { runId = '' } = await asked(server, post('/threads/t1/messages', { text: 'Hi.' }))
    expect(await followed(server, runId)).toBe('completed')
    const idsOf = async (query: string, headers: Record<string, string> = {}): Promise<readonly unknown[]> => {
      const response = await server.events(new Request(`${BASE}/runs/${runId}/events${query}`, { headers }))
      const ids = [...(await response.text()).matchAll(/^id: (.*)$/gm)].map(([, id]) => id)
      return [response.status, ...ids]
    }
    expect(await idsOf('')).toEqual([200, '1', '2', '3', '4'])
    expect(await idsOf('?after=1')).toEqual([200, '2', '3', '4'])
    expect(await idsOf('?after=1', { 'last-event-id': '3' })).toEqual([200, '4'])
    expect(await idsOf('?after=4')).toEqual([204])
    expect(await idsOf('', { 'last-event-id': '99' })).toEqual([204])
    for (const wrong of ['-1', '1.5', '1e3', 'x', ' ', '0x1', '99999999999999999999'])
      expect(await idsOf('', { 'last-event-id': wrong }), wrong).toEqual([400])
  })

  test('UI-18 the dialect is that of the request, else that of the handler, else 7', async () => {
    const titled = async (options: Partial<HandlerOptions>, query = ''): Promise<unknown> => {
      const server = served(kind, { model: new ScriptedModel().calls('pay'), options })
      const message = { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Go.' }] }
      const response = await server.aiSdk(post(`/chat${query}`, { id: 't1', messages: [message] }))
      const text = await response.text()
      // 5 has no requests for approval, 6 has them without a descriptor.
      if (response.status !== 200) return response.status
      return text.includes('approvalDescriptor') ? 7 : text.includes('"tool-approval-request"') ? 6 : 5
    }
    expect([await titled({}), await titled({ dialect: 6 }), await titled({ dialect: 5 })]).toEqual([7, 6, 5])
    expect([await titled({ dialect: 6 }, '?dialect=7'), await titled({}, '?dialect=5')]).toEqual([7, 5])
    expect(await titled({}, '?dialect=8')).toBe(400)
  })

  test('RQ-03 RQ-04 a caller without access to a conversation gets the answer that a stranger gets', async () => {
    const authorize = (request: Request): unknown => {
      const user = request.headers.get('x-user')
      if (user === 'thrown') throw new Error('secret')
      if (user === 'moved') return new Response('Sign in.', { status: 401 })
      return user === null ? undefined : { resourceId: user, by: user }
    }
    const server = served(kind, { model: new ScriptedModel().says('Hello.'), options: { authorize } })
    const by = (user: string, path: string, method = 'GET'): Request =>
      new Request(`${BASE}${path}`, {
        method,
        headers: { 'x-user': user },
        ...(method === 'POST' && { body: '{"text":"Hi."}' }),
      })
    const { runId } = await asked(server, by('ann', '/threads/t1/messages', 'POST'))
    expect((await server.requests(new Request(`${BASE}/threads/t1/messages`))).status).toBe(404)
    const [other, unknown] = await Promise.all(
      ['t1', 't2'].map((id) => server.requests(by('bob', `/threads/${id}/messages`))),
    )
    expect([other?.status, await other?.text()]).toEqual([unknown?.status, await unknown?.text()])
    expect((await server.events(by('bob', `/runs/${runId}/events`))).status).toBe(404)
    expect((await server.events(by('ann', `/runs/${runId}/events`))).status).toBe(200)
    const thrown = await server.requests(by('thrown', '/threads/t1/messages'))
    expect([thrown.status, await thrown.text()]).toEqual([500, ''])
    expect((await server.requests(by('moved', '/threads/t1/messages'))).status).toBe(401)
  })

  test('RQ-03 without `authorize` only this machine is served', async () => {
    const { requests } = served(kind, { model: new ScriptedModel() })
    const from = (headers: Record<string, string>, base = BASE): Promise<Response> =>
      requests(new Request(`${base}/threads/t1/messages`, { headers }))
    expect((await from({})).status).toBe(404)
    expect((await from({}, 'http://shop.example/api')).status).toBe(403)
    expect((await from({ origin: 'https://evil.example' })).status).toBe(403)
    expect((await from({ host: 'evil.example:80' })).status).toBe(403)
  })
})

describe.each(['sessions', 'harness'] as const)('a busy conversation over %s', (kind) => {
  test('RQ-07 with `reject` a second message during a run is refused; it can be given to the run', async () => {
    const { model, release } = waiting()
    const server = served(kind, { model })
    const { runId } = await asked(server, post('/threads/t1/messages', { text: '1' }))
    expect(await asked(server, post('/threads/t1/messages', { text: '2', whenBusy: 'reject' }))).toMatchObject({
      status: 409,
      code: 'busy',
    })
    expect(await asked(server, post('/threads/t1/messages', { text: '3', whenBusy: 'steer' }))).toMatchObject({
      status: 202,
      runId,
    })
    release()
    expect(await followed(server, runId)).toBe('completed')
  })

  test('RQ-05 a second message waits for its turn', async () => {
    const { model, release } = waiting()
    const server = served(kind, { model })
    await asked(server, post('/threads/t1/messages', { text: '1' }))
    expect(await asked(server, post('/threads/t1/messages', { text: '2' }))).toMatchObject({ status: 202, runId: null })
    release()
  })

  test('RQ-14 a message while people are waited for waits too; with `newMessage: decline` it refuses what waits', async () => {
    const model = (): ScriptedModel => new ScriptedModel().calls('pay').says('As you like.')
    const server = served(kind, { model: model() })
    const { runId } = await asked(server, post('/threads/t1/messages', { text: 'Pay.' }))
    await followed(server, runId)
    const no = { text: 'No.', messageId: 'm2' }
    expect(await asked(server, post('/threads/t1/messages', no))).toMatchObject({ status: 202, runId: null })
    expect(await followed(server, runId)).toBe('paused')
    const declining = served(kind, { model: model(), options: { newMessage: 'decline' } })
    const second = await asked(declining, post('/threads/t1/messages', { text: 'Pay.' }))
    await followed(declining, second.runId)
    expect(await asked(declining, post('/threads/t1/messages', no))).toMatchObject({ status: 202, runId: second.runId })
    expect(await followed(declining, second.runId)).toBe('completed')
  })
})

test('over a harness the runs of a request have its dependencies, also after a pause', async () => {
  const seen: unknown[] = []
  const note = tool('note', (_: unknown, { deps }) => void seen.push(deps), { requiresApproval: true })
  const log = memoryLog()
  const model = new ScriptedModel().calls('note').says('Noted.')
  const harness = harnessOf({ model, tools: [note], log })
  onTestFinished(() => harness.close())
  const authorize = (request: Request): unknown => ({ resourceId: 'ann', deps: request.headers.get('x-deps') })
  const server = { log, ...createHandlers({ harness, log, authorize }) }
  const by = (deps: string, path: string, body: object): Request =>
    new Request(`${BASE}${path}`, { method: 'POST', headers: { 'x-deps': deps }, body: JSON.stringify(body) })
  const { runId } = await asked(server, by('first', '/threads/t1/messages', { text: 'Note it.' }))
  expect(await followed(server, runId)).toBe('paused')
  await asked(server, by('second', '/threads/t1/answers', { answers: [{ callId: 'call_1', approved: true }] }))
  expect(await followed(server, runId)).toBe('completed')
  expect(seen).toEqual(['second'])
})

test('RQ-19 an interrupted run is recovered', async () => {
  const folder = temporaryFolder()
  const { model, release } = waiting()
  const log = fileLog(folder)
  const harness = harnessOf({ model, log })
  const first = createHandlers({ harness, log })
  const { runId } = await asked(first, post('/threads/t1/messages', { text: 'Go.' }))
  const closing = harness.close({ runs: 'leave', timeoutMs: 1 })
  release()
  await closing
  const server = served('harness', { model: new ScriptedModel().says('Recovered.'), log: fileLog(folder) })
  // The conversation is free when its run has stopped.
  await vi.waitFor(async () => {
    expect(await asked(server, post(`/runs/${runId}/recover`))).toMatchObject({ status: 202, runId })
    expect(await followed(server, runId)).toBe('completed')
  }, 10_000)
})
