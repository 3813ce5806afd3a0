import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { Harness, HarnessError, memoryLog } from 'thinharness'
import { fallback } from 'thinharness/models'
import { anthropic, openaiChat } from 'thinharness/providers'
import { behaviourOf, fetchOf, inVirtualTime, SCHEDULES, toldEnd } from './fault-script.js'
import { times } from '../support/length.js'
import type { Schedule } from './fault-script.js'

const WHOLE = 'Paris – ja, größer als 2 Mio. 🗼'

/** What a caller has seen of one call. */
interface Seen {
  readonly answers: string | null
  readonly requests: number
  readonly latencyMs: number
  readonly withdrawn: boolean
  readonly failure: string | null
  readonly text: string
}

/** A model of the candidates of a schedule, whose servers follow its script. */
class Stage {
  readonly requests: Record<string, number> = {}
  readonly harness: Harness
  readonly log = memoryLog()

  constructor({ api, candidates, policy, script }: Schedule) {
    const began = Date.now()
    const candidate = (name: string): ReturnType<typeof anthropic> => {
      const behaviour = behaviourOf(script[name] ?? {}, () => Date.now() - began)
      const fetch = fetchOf(api, () => {
        this.requests[name] = (this.requests[name] ?? 0) + 1
        return behaviour()
      })
      const options = { apiKey: 'any', baseUrl: 'http://127.0.0.1:9', fetch }
      return api === 'anthropic-messages' ? anthropic(name, options) : openaiChat(name, options)
    }
    const { retries, waitMs: maxWaitMs, attemptMs, breaker } = policy
    const model = fallback(candidates.map(candidate), { retries, maxWaitMs, attemptMs, breaker })
    this.harness = new Harness({ model, log: this.log, builtinTools: [] })
  }

  get total(): number {
    return Object.values(this.requests).reduce((sum, each) => sum + each, 0)
  }

  async call(streamed: boolean, abortAfterMs: number | null): Promise<Seen> {
    const [before, began] = [this.total, Date.now()]
    const controller = new AbortController()
    if (abortAfterMs !== null) setTimeout(() => controller.abort(), abortAfterMs)
    let withdrawn = false
    let text = ''
    const seen = (more: Pick<Seen, 'answers' | 'failure'>): Seen => ({
      ...{ requests: this.total - before, latencyMs: Date.now() - began, withdrawn, text },
      ...more,
    })
    const run = this.harness.stream('Where?', { signal: controller.signal, deltas: streamed })
    try {
      for await (const event of run) {
        if (event.kind === 'text_delta') text += event.text
        if (event.kind === 'deltas_withdrawn') [withdrawn, text] = [true, '']
      }
      const { transcript } = await run.result
      const last = transcript.at(-1)
      return seen({ answers: last?.role === 'assistant' ? last.model : null, failure: null })
    } catch (error) {
      const known = error instanceof HarnessError ? error : null
      return seen({
        answers: null,
        failure: known?.code === 'cancelled' ? 'aborted' : (known?.failure ?? String(error)),
      })
    }
  }
}

/** A reply that has told its finish reason is whole, whether its stream is cut or stays open after that. */
function isWholeBeforeStall({ api, candidates: [first = ''], script }: Schedule, seen: Seen): boolean {
  const { stall = 0 } = script[first]?.byRequest?.[0] ?? {}
  return stall >= toldEnd(api) && seen.answers === first && seen.requests === 1 && seen.text === WHOLE
}

/** Nobody may be asked: that is `overloaded`, whatever the last of them failed with. */
function isAllOpen({ requests, failure }: Seen): boolean {
  return requests === 0 && failure === 'overloaded'
}

async function misses(schedule: Schedule): Promise<readonly string[]> {
  const stage = new Stage(schedule)
  const began = Date.now()
  const found: string[] = []
  for (const [index, { at, abortAt }] of schedule.calls.entries()) {
    const early = at - (Date.now() - began)
    if (early > 0) await vi.advanceTimersByTimeAsync(early)
    const seen = await inVirtualTime(stage.call(schedule.stream, abortAt === undefined ? null : abortAt - at))
    const ideal = schedule.ideal.calls[index]
    if (ideal === undefined) throw new Error(`Nobody wrote the ideal of call ${index}.`)
    const fits = [ideal, ...(ideal.or === undefined ? [] : [{ ...ideal, ...ideal.or }])].some(
      ({ answers, requests, latencyMs, withdrawn, failure }) =>
        seen.answers === answers &&
        seen.requests >= requests.least &&
        seen.requests <= requests.most &&
        seen.latencyMs <= latencyMs.most &&
        (!schedule.stream || seen.withdrawn === withdrawn) &&
        (seen.failure === failure || isAllOpen(seen)),
    )
    if (!fits && !isWholeBeforeStall(schedule, seen))
      found.push(`call ${index}: ${JSON.stringify(seen)} instead of ${JSON.stringify(ideal)}`)
  }
  for (const [name, { least = 0, most = Infinity }] of Object.entries(schedule.ideal.total)) {
    const count = stage.requests[name] ?? 0
    if (count < least || count > most) found.push(`${name} got ${count} requests`)
  }
  return found
}

beforeAll(async () => {
  // Loads what the first requests load.
  for (const stream of [true, false])
    for (const api of ['anthropic-messages', 'openai-chat'] as const) {
      const [given] = SCHEDULES
      if (given !== undefined)
        await new Stage({
          ...given,
          api,
          stream,
          candidates: ['a'],
          script: { a: { byRequest: [{ ok: true }] } },
        }).call(stream, null)
    }
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'performance'] })
})
afterAll(() => void vi.useRealTimers())

describe('the ideal candidate answers within the ideal number of requests', () => {
  test.each(SCHEDULES.map((schedule) => [schedule.id, schedule.family, schedule] as const))(
    '%s: %s',
    async (_id, _family, schedule) => expect(await misses(schedule)).toEqual([]),
  )
})

describe.each([10, times(40, 100)])('with %s calls at once', (count) => {
  test('a call asks each candidate so often at most, an answer is whole, and nothing follows a request that is at fault', async () => {
    for (const schedule of SCHEDULES) {
      const stage = new Stage(schedule)
      const { abortAt, at = 0 } = schedule.calls[0] ?? {}
      const call = (): Promise<Seen> => stage.call(schedule.stream, abortAt === undefined ? null : abortAt - at)
      const all = await inVirtualTime(Promise.all(Array.from({ length: count }, call)))
      const each = schedule.candidates.length * (1 + schedule.policy.retries)
      expect(stage.total).toBeLessThanOrEqual(count * each)
      for (const { answers, text, failure } of all) {
        if (schedule.stream) expect(text).toBe(answers === null ? text : WHOLE)
        expect(answers === null).toBe(failure !== null)
      }
      if (schedule.family === 'the request is at fault') expect(stage.total).toBe(all.length)
    }
  })
})
