import { readFileSync } from 'node:fs'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { streamText } from 'ai7'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { Harness } from 'thinharness'
import type { Model } from 'thinharness'
import { fallback } from 'thinharness/models'
import { anthropic, openaiChat } from 'thinharness/providers'
import { behaviourOf, fetchOf, inVirtualTime, SCHEDULES } from './fault-script.js'
import type { Schedule } from './fault-script.js'

/** What a person sees of one call. */
interface Seen {
  readonly text: string
  readonly failed: boolean
  readonly ms: number
}

type Ask = (signal: AbortSignal) => Promise<string>

/** A `fetch` for a candidate whose server follows the script. */
function serverOf({ api, script }: Schedule, name: string): typeof fetch {
  const began = Date.now()
  return fetchOf(
    api,
    behaviourOf(script[name] ?? {}, () => Date.now() - began),
  )
}

function modelOf(schedule: Schedule, name: string): Model {
  const options = { apiKey: 'any', baseUrl: 'http://127.0.0.1:9', fetch: serverOf(schedule, name) }
  return schedule.api === 'anthropic-messages' ? anthropic(name, options) : openaiChat(name, options)
}

/** The ways to ask: each streams, as pages do. */
const WAYS: Readonly<Record<string, (schedule: Schedule) => Ask>> = {
  fallback: (schedule) => {
    const { retries, waitMs: maxWaitMs, attemptMs, breaker } = schedule.policy
    const candidates = schedule.candidates.map((name) => modelOf(schedule, name))
    return harnessAsk(fallback(candidates, { retries, maxWaitMs, attemptMs, breaker }))
  },
  'the first model alone': (schedule) => harnessAsk(modelOf(schedule, schedule.candidates[0] ?? '')),
  'AI SDK 7, the first model': (schedule) => {
    const [name = ''] = schedule.candidates
    const settings = { apiKey: 'any', fetch: serverOf(schedule, name) }
    const model =
      schedule.api === 'anthropic-messages' ? createAnthropic(settings)(name) : createOpenAI(settings).chat(name)
    return async (abortSignal) => {
      let failure: unknown
      const { textStream } = streamText({
        model,
        prompt: 'Where?',
        abortSignal,
        onError: ({ error }) => void (failure = error),
      })
      let text = ''
      for await (const piece of textStream) text += piece
      if (failure !== undefined) throw new Error('It failed.', { cause: failure })
      return text
    }
  },
}

function harnessAsk(model: Model): Ask {
  const harness = new Harness({ model, builtinTools: [] })
  return async (signal) => (await harness.stream('Where?', { signal }).result).text
}

/** A call is given up after so long, as people do. */
const PATIENCE_MS = 120_000
const WHOLE = 'Paris – ja, größer als 2 Mio. 🗼'

async function seenBy(ask: Ask): Promise<Seen> {
  const began = Date.now()
  const patience = new AbortController()
  const timer = setTimeout(() => patience.abort(), PATIENCE_MS)
  const text = await ask(patience.signal).catch(() => null)
  clearTimeout(timer)
  return { text: text ?? '', failed: text === null, ms: Date.now() - began }
}

/** All calls that some candidate could answer, and that nobody aborts. */
async function played(way: (schedule: Schedule) => Ask): Promise<readonly Seen[]> {
  const seen: Seen[] = []
  for (const schedule of SCHEDULES) {
    const began = Date.now()
    const ask = way({ ...schedule, stream: true })
    for (const [index, { at, abortAt }] of schedule.calls.entries()) {
      const early = at - (Date.now() - began)
      if (early > 0) await vi.advanceTimersByTimeAsync(early)
      const isAnswerable = schedule.ideal.calls[index]?.answers !== null
      const one = await inVirtualTime(seenBy(ask))
      if (isAnswerable && abortAt === undefined) seen.push(one)
    }
  }
  return seen
}

function rowOf(name: string, seen: readonly Seen[]): string {
  const answered = seen.filter(({ failed }) => !failed)
  const times = answered.map(({ ms }) => ms).sort((one, other) => one - other)
  const at = (part: number): string => ((times[Math.floor((times.length - 1) * part)] ?? 0) / 1000).toFixed(1)
  const half = answered.filter(({ text }) => text !== WHOLE).length
  return `| ${name} | ${seen.length} | ${seen.length - answered.length} | ${half} | ${at(0.5)} | ${at(0.95)} |`
}

beforeAll(async () => {
  // Loads what the first requests load: that takes time of the machine, not of the scripts.
  const [given] = SCHEDULES
  for (const way of Object.values(WAYS))
    for (const api of ['anthropic-messages', 'openai-chat'] as const)
      if (given !== undefined)
        await way({ ...given, api, candidates: ['a'], script: { a: { byRequest: [{ ok: true }] } } })(
          new AbortController().signal,
        )
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'performance'] })
  // Spread of waits.
  vi.spyOn(Math, 'random').mockReturnValue(0.5)
})
afterAll(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

test('what people see of provider faults with a fallback, with one model, and with the AI SDK, as the docs say', async () => {
  const rows: string[] = []
  for (const [name, way] of Object.entries(WAYS)) rows.push(rowOf(name, await played(way)))
  const page = readFileSync(new URL('../../docs/failover.md', import.meta.url), 'utf8')
  const cells = (text: string): string => text.replace(/ +/g, ' ')
  for (const row of rows) expect(cells(page), rows.join('\n')).toContain(row)
}, 120_000)
