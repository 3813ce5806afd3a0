import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { FollowError, followRun } from 'thinharness/ui/client'

const URL = 'http://localhost/api/runs/run_1/events'

function body(...frames: readonly string[]): Response {
  return new Response(frames.map((frame) => `${frame}\n\n`).join(''), {
    headers: { 'content-type': 'text/event-stream' },
  })
}

const EVENT = 'id: 3\nevent: turn\ndata: {"kind":"turn","runId":"run_1","seq":3}'
const END = 'event: end\ndata: {"status":"completed","seq":4}'

/** Answers, one for each connection, and when and with which cursor it was asked for. */
class Server {
  readonly asked: { readonly at: number; readonly cursor: string | null }[] = []
  readonly answers: (Response | Error)[] = []
  readonly #begun = Date.now()

  readonly fetch = ((_url: string, init?: RequestInit): Promise<Response> => {
    const cursor = new Headers(init?.headers).get('last-event-id')
    this.asked.push({ at: Date.now() - this.#begun, cursor })
    const answer = this.answers.shift() ?? new TypeError('fetch failed')
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer)
  }) as typeof fetch

  get times(): readonly number[] {
    return this.asked.map(({ at }) => at)
  }
}

async function kindsOf(server: Server, signal?: AbortSignal): Promise<readonly string[]> {
  const kinds: string[] = []
  for await (const { kind } of followRun(URL, { fetch: server.fetch, ...(signal && { signal }) })) kinds.push(kind)
  return kinds
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
  vi.spyOn(Math, 'random').mockReturnValue(0)
})

afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
})

test('SS-25 a lost connection is opened again at once, then after 1, 2, 4 … 30 s, each up to a quarter shorter', async () => {
  const server = new Server()
  const over = new AbortController()
  const following = kindsOf(server, over.signal)
  await vi.advanceTimersByTimeAsync(95_000)
  expect(server.times).toEqual([0, 0, 1_000, 3_000, 7_000, 15_000, 31_000, 61_000, 91_000])
  vi.spyOn(Math, 'random').mockReturnValue(1)
  await vi.advanceTimersByTimeAsync(26_000 + 22_500)
  expect(server.times.slice(9)).toEqual([121_000, 121_000 + 22_500])
  over.abort()
  expect(await following).toEqual([])
})

test('SS-25 what arrives begins the waits anew, and the cursor is that of the last event', async () => {
  const server = new Server()
  server.answers.push(new TypeError('fetch failed'), body(), body(EVENT), body(), body(END))
  const following = kindsOf(server)
  await vi.advanceTimersByTimeAsync(10_000)
  expect(await following).toEqual(['turn'])
  expect(server.asked).toEqual([
    { at: 0, cursor: null },
    { at: 0, cursor: null },
    { at: 1_000, cursor: null },
    { at: 1_000, cursor: '3' },
    { at: 2_000, cursor: '3' },
  ])
})

test('what comes again on each connection is no progress: the waits grow', async () => {
  const server = new Server()
  const over = new AbortController()
  const again = ['event: open_turn\ndata: {"seq":2,"runId":"run_1"}', 'event: text_delta\ndata: {"kind":"text_delta"}']
  for (let count = 0; count < 6; count++) server.answers.push(body(...again))
  const following = kindsOf(server, over.signal)
  await vi.advanceTimersByTimeAsync(16_000)
  expect(server.times).toEqual([0, 0, 1_000, 3_000, 7_000, 15_000])
  over.abort()
  await following
})

test('an event of any size is read once, in whatever pieces it arrives', async () => {
  const text = 'x'.repeat(6_000_000)
  const bytes = new TextEncoder().encode(
    `id: 1\r\nevent: turn\r\ndata: {"kind":"turn",\r\ndata: "text":"${text}"}\r\n\r\n`,
  )
  // Of the smaller pieces there are 6,000: a line that were scanned again for each would take minutes.
  for (const size of [1_000, 65_536]) {
    const pieces = function* (): Generator<Uint8Array> {
      for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size)
    }
    const server = new Server()
    server.answers.push(new Response(ReadableStream.from(pieces())), body(END))
    const events = []
    for await (const event of followRun(URL, { fetch: server.fetch })) events.push(event)
    expect(events).toMatchObject([{ kind: 'turn', text, cursor: '1' }])
  }
})

test('SS-25 a server that fails is asked again, one that refuses is not', async () => {
  const server = new Server()
  server.answers.push(
    new Response('', { status: 503 }),
    new Response('{"message":"There is no such run."}', { status: 404 }),
  )
  const following = kindsOf(server).catch((error: unknown) => error)
  await vi.advanceTimersByTimeAsync(5_000)
  const error = await following
  expect(error).toBeInstanceOf(FollowError)
  expect(error).toMatchObject({ status: 404, message: 'There is no such run.' })
  expect(server.asked).toHaveLength(2)
})

test('SS-25 UI-33 a page that becomes visible or comes online does not wait', async () => {
  const [window, document] = [new EventTarget(), Object.assign(new EventTarget(), { visibilityState: 'hidden' })]
  vi.stubGlobal('document', document)
  vi.stubGlobal('addEventListener', window.addEventListener.bind(window))
  vi.stubGlobal('removeEventListener', window.removeEventListener.bind(window))
  const server = new Server()
  const following = kindsOf(server)
  await vi.advanceTimersByTimeAsync(15_500)
  expect(server.times).toHaveLength(6)
  document.dispatchEvent(new Event('visibilitychange'))
  await vi.advanceTimersByTimeAsync(0)
  expect(server.times).toHaveLength(6)
  document.visibilityState = 'visible'
  document.dispatchEvent(new Event('visibilitychange'))
  await vi.advanceTimersByTimeAsync(0)
  expect(server.times.slice(6)).toEqual([15_500])
  server.answers.push(body(END))
  window.dispatchEvent(new Event('online'))
  await vi.advanceTimersByTimeAsync(0)
  expect(server.times.slice(7)).toEqual([15_500])
  expect(await following).toEqual([])
})
