import { expect, test } from 'vitest'
import { fileLog, Harness } from 'thinharness'
import type { HarnessOptions, RunEvent } from 'thinharness'
import { openai } from 'thinharness/providers'
import type { OpenAiOptions } from 'thinharness/providers'
import { expectValidRequest } from '../../support/request-schemas.js'
import { inTemporaryFolder } from '../../support/folder.js'
import { eventsOf, message, response } from './replies.js'
import type { Fields } from './replies.js'

inTemporaryFolder()

type Answer = 'pending' | 'done' | 'failed' | 'unavailable' | 'unknown' | 'cut'

/** Background mode, following its documentation: what the server answers when it is asked for a response. */
class BackgroundStage {
  readonly requests: string[] = []
  readonly bodies: Fields[] = []
  /** Called with each request. */
  onRequest: (line: string) => void = () => undefined
  readonly #answers: Answer[]
  #count = 0

  constructor(...answers: readonly Answer[]) {
    this.#answers = [...answers]
  }

  readonly fetch: typeof globalThis.fetch = async (url, init) => {
    const request = new Request(url, init)
    const line = `${request.method} ${new URL(request.url).pathname.replace('/v1', '')}`
    this.requests.push(line)
    this.onRequest(line)
    const isNew = line === 'POST /responses'
    if (isNew) this.bodies.push((await request.json()) as Fields)
    if (isNew && this.bodies.at(-1)!['stream'] === true) return this.#stream()
    const id = isNew ? `resp_${(this.#count += 1)}` : line.split('/')[2]!
    const answer = isNew ? 'pending' : (this.#answers.shift() ?? 'done')
    if (answer === 'unavailable') return Response.json({ error: { message: 'Try later.' } }, { status: 503 })
    if (answer === 'unknown') return Response.json({ error: { message: `No response \`${id}\`.` } }, { status: 404 })
    return Response.json(whole(id, answer))
  }

  /** The events of a response, of which a part arrives when it is cut. */
  #stream(): Response {
    const reply = whole(`resp_${(this.#count += 1)}`, 'done')
    const all = eventsOf(reply).map((event) => `data: ${JSON.stringify(event)}\n\n`)
    const events = this.#answers.at(0) === 'cut' ? all.slice(0, 4) : all
    if (events.length < all.length) this.#answers.shift()
    return new Response(events.join(''), { headers: { 'content-type': 'text/event-stream' } })
  }

  harness(more: HarnessOptions = {}, options: OpenAiOptions = {}): Harness {
    const model = openai('gpt-5.5', { apiKey: 'k', fetch: this.fetch, background: true, maxRetries: 1, ...options })
    return new Harness({ model, builtinTools: [], ...more })
  }
}

function whole(id: string, answer: Answer): Fields {
  if (answer === 'pending') return { id, object: 'response', status: 'queued', output: [], usage: null }
  if (answer !== 'failed') return response([message('Done.')], { id })
  return { id, object: 'response', status: 'failed', output: [], error: { code: 'server_error', message: 'It broke.' } }
}

async function eventsOfRun(
  run: AsyncIterable<RunEvent>,
  onEvent: (event: RunEvent) => void = () => undefined,
): Promise<readonly RunEvent[]> {
  const events: RunEvent[] = []
  for await (const event of run) {
    events.push(event)
    onEvent(event)
  }
  return events
}

test('a response is submitted, its id is stored, and it is asked for until it has ended', async () => {
  const stage = new BackgroundStage('pending', 'unavailable', 'done')
  const run = stage.harness().stream('Go.', { deltas: false })
  const events = await eventsOfRun(run)
  expect((await run.result).text).toBe('Done.')
  expect(stage.requests).toEqual(['POST /responses', ...Array<string>(3).fill('GET /responses/resp_1')])
  expect(stage.bodies).toMatchObject([{ background: true, store: true }])
  expectValidRequest('openai-responses', stage.bodies[0])
  expect(events.filter(({ kind }) => kind === 'request_submitted')).toMatchObject([
    { provider: 'openai', id: 'resp_1' },
  ])
  expect(events.filter(({ kind }) => kind === 'transport_retry')).toEqual([])
})

test('readers get a response as it comes', async () => {
  const stage = new BackgroundStage()
  const events = await eventsOfRun(stage.harness().stream('Go.', { deltas: true }))
  expect(events.map((event) => (event.kind === 'text_delta' ? event.text : '')).join('')).toBe('Done.')
  expect(events.filter(({ kind }) => kind === 'request_submitted')).toHaveLength(1)
  expect(stage.requests).toEqual(['POST /responses'])
})

test('a stream that is cut is no second request: its text is withdrawn, and the whole response is fetched', async () => {
  const stage = new BackgroundStage('cut', 'pending', 'done')
  const run = stage.harness().stream('Go.', { deltas: true })
  const events = await eventsOfRun(run)
  expect((await run.result).text).toBe('Done.')
  expect(stage.requests).toEqual(['POST /responses', ...Array<string>(2).fill('GET /responses/resp_1')])
  expect(events.filter(({ kind }) => kind === 'deltas_withdrawn')).toHaveLength(1)
  expect(events.filter(({ kind }) => kind === 'transport_retry')).toMatchObject([{ failure: 'connection', delayMs: 0 }])
})

/** A run that was left while its response was pending, in its log. */
async function leftBehind(stage: BackgroundStage): Promise<ReturnType<typeof fileLog>> {
  const log = fileLog('runs')
  const first = stage.harness({ log })
  const asked = new Promise<void>((resolve) => {
    stage.onRequest = (line) => {
      if (line.startsWith('GET')) resolve()
    }
  })
  const running = first.run('Go.', { runId: 'run_1' })
  const left = expect(running).rejects.toMatchObject({ code: 'interrupted' })
  await asked
  await first.close()
  await left
  return log
}

test('a process that recovers the run fetches the response that was submitted', async () => {
  const stage = new BackgroundStage('pending', 'done')
  const log = await leftBehind(stage)
  expect((await stage.harness({ log }).recover('run_1')).text).toBe('Done.')
  expect(stage.requests).toEqual(['POST /responses', ...Array<string>(2).fill('GET /responses/resp_1')])
})

test('a response that the provider does not have any more is asked for again', async () => {
  const stage = new BackgroundStage('pending', 'unknown', 'done')
  const log = await leftBehind(stage)
  expect((await stage.harness({ log }).recover('run_1')).text).toBe('Done.')
  expect(stage.requests.slice(2)).toEqual(['GET /responses/resp_1', 'POST /responses', 'GET /responses/resp_2'])
})

test('a submitted response that has failed is asked for again, as another one', async () => {
  const stage = new BackgroundStage('pending', 'failed', 'done')
  const log = await leftBehind(stage)
  expect((await stage.harness({ log }).recover('run_1')).text).toBe('Done.')
  expect(stage.requests.slice(2)).toEqual(['GET /responses/resp_1', 'POST /responses', 'GET /responses/resp_2'])
})

test.each([false, true])('to cancel the run cancels its response (deltas: %s)', async (deltas) => {
  const stage = new BackgroundStage(...Array<Answer>(100).fill('pending'))
  const controller = new AbortController()
  const cancelled = new Promise<string>((resolve) => {
    stage.onRequest = (line) => {
      if (line.startsWith('GET')) controller.abort()
      if (line.endsWith('/cancel')) resolve(line)
    }
  })
  // A stream of which nothing comes after its beginning is cut by the abort.
  const open: typeof globalThis.fetch = (url, init) => {
    if (!deltas || new Request(url, init).url.includes('resp_')) return stage.fetch(url, init)
    const created = { type: 'response.created', response: { id: 'resp_1', status: 'queued', output: [] } }
    const text = `data: ${JSON.stringify(created)}\n\n`
    return Promise.resolve(
      new Response(
        new ReadableStream({
          start: (body) => body.enqueue(new TextEncoder().encode(text)),
          pull: () => new Promise<void>(() => undefined),
        }),
        { headers: { 'content-type': 'text/event-stream' } },
      ),
    )
  }
  const run = stage.harness({}, { fetch: open }).stream('Go.', { deltas, signal: controller.signal })
  const reading = eventsOfRun(run, ({ kind }) => {
    if (deltas && kind === 'request_submitted') controller.abort()
  })
  await reading.catch(() => undefined)
  await expect(run.result).rejects.toMatchObject({ code: 'cancelled' })
  expect(await cancelled).toBe('POST /responses/resp_1/cancel')
})

test('`background` excludes a client and a WebSocket', () => {
  const client = { responses: { create: () => Promise.resolve({}) } }
  expect(() => openai('gpt-5.5', { background: true, client })).toThrow('`background: true` without `client`')
  expect(() => openai('gpt-5.5', { background: true, transport: 'websocket' })).toThrow('without `background`')
})
