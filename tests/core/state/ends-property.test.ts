import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Harness, HarnessError, memoryLog } from 'thinharness'
import type { DurableEvent, HarnessOptions, HarnessResult, Limits, LogStore } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { eventsIn } from '../../run/resume/pause-support.js'
import { rounds, timeLimit } from '../../support/length.js'
import { answerTo, CALLS, toolsOf } from './random-lives.js'

/** A run under limits that may end it anywhere: plain data. */
interface RandomEnd {
  readonly turns: readonly (readonly string[])[]
  readonly childTurns: readonly (readonly string[])[]
  readonly sequential: boolean
  readonly toolRetries: number
  readonly limits: Limits
  readonly onLimit: 'fail' | 'answer'
  readonly approves: boolean
  readonly inParts: boolean
  readonly verdict: 'run_again'
  readonly forkLimit: number | null
  /** The request of this turn fails, of the run or of a child. */
  readonly failsAt: number | null
  /** The run is cancelled when so many events are stored. */
  readonly cancelAt: number | null
}

const turnsOf = (maxLength: number): fc.Arbitrary<string[][]> =>
  fc.array(fc.array(fc.constantFrom<string>(...CALLS), { minLength: 1, maxLength: 3 }), { maxLength })
const limit = (max: number): fc.Arbitrary<number | undefined> =>
  fc.option(fc.integer({ min: 1, max }), { nil: undefined })

const randomEnd: fc.Arbitrary<RandomEnd> = fc.record({
  turns: turnsOf(3),
  childTurns: turnsOf(2),
  sequential: fc.boolean(),
  toolRetries: fc.integer({ min: 0, max: 2 }),
  limits: fc.record({ toolCalls: limit(4), modelRequests: limit(4), outputTokens: limit(30), inputTokens: limit(60) }),
  onLimit: fc.constantFrom('fail', 'answer'),
  approves: fc.boolean(),
  inParts: fc.boolean(),
  verdict: fc.constant('run_again'),
  forkLimit: fc.option(fc.integer({ min: 0, max: 2 })),
  failsAt: fc.option(fc.integer({ min: 0, max: 3 }), { freq: 3 }),
  cancelAt: fc.option(fc.integer({ min: 1, max: 30 }), { freq: 3 }),
})

/** The model calls what its turn says; a fork goes on where it begins. */
function modelOf({ turns: top, childTurns, failsAt }: RandomEnd): ScriptedModel {
  return new ScriptedModel().always(({ turn, messages }) => {
    const isTop = messages.some((message) => message.role === 'user' && String(message.content).startsWith('go'))
    if (turn === failsAt) return { fault: 'error', error: new Error('Down.') }
    const calls = (isTop ? top : childTurns)[turn]
    return calls === undefined ? 'Done.' : { calls: calls.map((name) => ({ name })) }
  })
}

function harnessFor(run: RandomEnd, log: LogStore): Harness {
  const { sequential, toolRetries, limits, onLimit } = run
  const options: HarnessOptions = { model: modelOf(run), tools: toolsOf([]), toolRetries, limits, onLimit, log }
  return new Harness({ builtinTools: [], ...options, toolExecution: sequential ? 'sequential' : 'auto' })
}

type End = HarnessResult | HarnessError

/** Answers until nothing waits, or the run fails, or has no request left for the answers. */
async function toTheEnd(harness: Harness, run: RandomEnd, begun: Promise<HarnessResult>): Promise<End> {
  let result: HarnessResult | null = null
  try {
    result = await begun
    while (result.pending.length > 0) {
      const answers = result.pending.map((item) => answerTo(item, run))
      result = await harness.resume(result.runId, run.inParts ? answers.slice(-1) : answers)
    }
    return result
  } catch (error) {
    expect(error).toBeInstanceOf(HarnessError)
    const failed = error as HarnessError
    return result !== null && failed.message.endsWith('The run stays paused.') ? result : failed
  }
}

/** The log with another `append`. */
function bound(log: LogStore, append: LogStore['append']): LogStore {
  return new Proxy(log, {
    get: (target, name) => {
      const member: unknown = name === 'append' ? append : Reflect.get(target, name)
      return typeof member === 'function' ? (member.bind(target) as unknown) : member
    },
  })
}

function facts(end: End): unknown {
  if (end instanceof HarnessError) return [end.code, end.message, end.run?.usage]
  return [end.stopReason, end.text, end.usage]
}

const caught = (work: Promise<HarnessResult>): Promise<End> => work.catch((error: unknown) => error as HarnessError)

/** The log is readable, gives the same ending again, and replays to it. */
async function checkLog(
  harness: Harness,
  log: LogStore,
  { runId, end }: { runId: string; end: End },
): Promise<DurableEvent[]> {
  const events = await eventsIn(log, runId)
  expect((await log.inspect({ kind: 'run', id: runId }))?.status).toMatch(/completed|failed|paused|cancelled/)
  expect(facts(await caught(harness.recover(runId)))).toEqual(facts(end))
  expect(facts(await caught(harness.replay(events)))).toEqual(facts(end))
  return events
}

test(
  'every run that ended replays to the same events, and a fork at each of its turns works and has a readable log',
  async () => {
    await fc.assert(
      fc.asyncProperty(randomEnd, async (run) => {
        const log = memoryLog()
        const harness = harnessFor(run, log)
        const controller = new AbortController()
        const append: LogStore['append'] = async (ref, events, options) => {
          await log.append(ref, events, options)
          if (ref.id === 'run_r' && events.some(({ seq }) => seq === run.cancelAt)) controller.abort()
        }
        const end = await toTheEnd(
          harness,
          run,
          harness.run('go', { runId: 'run_r', log: bound(log, append), signal: controller.signal }),
        )
        const events = await checkLog(harness, log, { runId: 'run_r', end })
        const turns = events.filter(({ kind }) => kind === 'model_message').length
        for (let afterTurn = 0; afterTurn <= turns; afterTurn++)
          for (const prompt of [undefined, 'go on']) {
            const runId = `run_f${afterTurn}${prompt === undefined ? '' : '_prompt'}`
            const limits = run.forkLimit === null ? {} : { limits: { toolCalls: run.forkLimit } }
            const forked = await toTheEnd(
              harness,
              run,
              harness.fork(events, { afterTurn, prompt }, { runId, ...limits }),
            )
            // It had its answer: only a prompt leads on.
            if (prompt === undefined && forked instanceof HarnessError && forked.code === 'invalid_options') continue
            if (forked instanceof HarnessError)
              expect(forked.code).toMatch(/limit_reached|tool_retries|provider_error|^error/)
            await checkLog(harness, log, { runId, end: forked })
          }
      }),
      rounds(60, 5_000),
    )
  },
  timeLimit(60_000),
)
