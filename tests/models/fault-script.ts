import { readFileSync } from 'node:fs'
import { vi } from 'vitest'

/** What a server does with one request. */
export interface Behaviour {
  readonly ok?: true
  readonly latencyMs?: number
  readonly pieceMs?: number
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly waitMs?: number
  readonly body?: string
  readonly reset?: true
  readonly hang?: true
  readonly cut?: number
  readonly stall?: number
  readonly error200?: string
  readonly errorEvent?: number
}

export interface Script {
  readonly byRequest?: readonly Behaviour[]
  readonly byTime?: readonly { readonly until: number; readonly do: Behaviour }[]
}

interface Bounds {
  readonly least: number
  readonly most: number
}

interface Ideal {
  readonly answers: string | null
  readonly requests: Bounds
  readonly latencyMs: { readonly most: number }
  readonly withdrawn: boolean
  readonly failure: string | null
}

/** A script of candidates and the outcome that is best. */
export interface Schedule {
  readonly id: string
  readonly family: string
  readonly api: 'openai-chat' | 'anthropic-messages'
  readonly stream: boolean
  readonly policy: {
    readonly retries: number
    readonly waitMs: number
    readonly attemptMs: number
    readonly breaker: { readonly failures: number; readonly openMs: number }
  }
  readonly candidates: readonly string[]
  readonly calls: readonly { readonly at: number; readonly abortAt?: number }[]
  readonly script: Readonly<Record<string, Script>>
  readonly ideal: {
    readonly calls: readonly (Ideal & { readonly or?: Partial<Ideal> })[]
    readonly total: Readonly<Record<string, Partial<Bounds>>>
  }
}

interface Bodies {
  readonly cuts: Readonly<Record<string, number>>
  readonly stream: string
  readonly json: object
}

const BODIES = JSON.parse(
  readFileSync(new URL('../data/fault-schedules/bodies.json', import.meta.url), 'utf8'),
) as Readonly<Record<string, Bodies>>

/** After so many bytes a stream has told its finish reason. */
export function toldEnd(api: Schedule['api']): number {
  return BODIES[api]?.cuts['before the end mark'] ?? Infinity
}

/** A `fetch` whose server behaves as `next` says. */
export function fetchOf(api: Schedule['api'], next: () => Behaviour): typeof fetch {
  return async (_url, init) => {
    const { signal } = init ?? {}
    const does = next()
    const bodies = BODIES[api]
    if (bodies === undefined) throw new Error(`No bodies of ${api}.`)
    const isStreamed = /"stream":true/.test(await new Response(init?.body).text())
    await aborted(signal, does.hang === true ? Infinity : (does.latencyMs ?? 0))
    if (does.reset === true) throw new TypeError('fetch failed', { cause: new Error('ECONNRESET') })
    if (does.status !== undefined)
      return new Response(does.body ?? '{"error":{"message":"No."}}', { status: does.status, headers: headersOf(does) })
    if (does.error200 !== undefined) return json(does.error200)
    if (!isStreamed) return json(JSON.stringify(bodies.json))
    return new Response(streamOf(new TextEncoder().encode(bodies.stream), does, signal), {
      headers: { 'content-type': 'text/event-stream' },
    })
  }
}

function json(text: string): Response {
  return new Response(text, { headers: { 'content-type': 'application/json' } })
}

function streamOf(
  bytes: Uint8Array,
  { cut, stall, errorEvent, body = '', pieceMs = 0 }: Behaviour,
  signal: AbortSignal | null | undefined,
): ReadableStream<Uint8Array> {
  const end = cut ?? stall ?? errorEvent ?? bytes.length
  const pieces = [bytes.subarray(0, Math.ceil(end / 2)), bytes.subarray(Math.ceil(end / 2), end)]
  if (errorEvent !== undefined) pieces.push(new TextEncoder().encode(`event: error\ndata: ${body}\n\n`))
  return new ReadableStream({
    async pull(controller) {
      const piece = pieces.shift()
      await aborted(signal, piece === undefined && stall !== undefined ? Infinity : pieceMs)
      if (piece !== undefined) controller.enqueue(piece)
      else if (cut !== undefined) controller.error(new TypeError('terminated'))
      else controller.close()
    },
  })
}

/** Waits, unless the request is aborted. */
function aborted(signal: AbortSignal | null | undefined, ms: number): Promise<void> {
  return new Promise((resolve, reject) => {
    if (ms === 0) resolve()
    else if (ms < Infinity) setTimeout(resolve, ms)
    signal?.addEventListener('abort', () => reject(signal.reason as Error))
  })
}

function headersOf({ headers = {} }: Behaviour): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, headerValue(value)]))
}

/** `+60s as HTTP date` and `+1s as epoch` mean a moment after the answer. */
function headerValue(value: string): string {
  const [, seconds, form] = /^([+-]\d+)s as (HTTP date|epoch)$/.exec(value) ?? []
  if (seconds === undefined) return value
  const atMs = Date.now() + Number(seconds) * 1000
  return form === 'epoch' ? String(Math.round(atMs / 1000)) : new Date(atMs).toUTCString()
}

export const SCHEDULES = readFileSync(new URL('../data/fault-schedules/schedules.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Schedule)

export function behaviourOf(script: Script, nowMs: () => number): () => Behaviour {
  let count = 0
  return () => {
    if (script.byTime !== undefined) return script.byTime.find(({ until }) => nowMs() < until)?.do ?? { ok: true }
    const list = script.byRequest ?? []
    return list[Math.min(count++, list.length - 1)] ?? { ok: true }
  }
}

/** Lets virtual time pass until `work` has settled. */
export async function inVirtualTime<T>(work: Promise<T>): Promise<T> {
  const state = { isOver: false }
  const over = (): void => void (state.isOver = true)
  work.then(over, over)
  while (!state.isOver) await vi.advanceTimersByTimeAsync(10)
  return work
}
