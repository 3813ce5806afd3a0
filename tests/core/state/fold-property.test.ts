import fc from 'fast-check'
import { expect, test } from 'vitest'
import { HarnessError } from 'thinharness'
import type { DurableEvent, RunEvent } from 'thinharness'
import { fold } from '#core/loop/apply.js'
import { closedTranscript } from '#core/state/closing.js'
import type { RunState } from '#core/state/state.js'
import { checkTranscript } from './invariants.js'
import { asJson, play, randomRun } from './random-runs.js'
import type { PlayedRun, RandomRun } from './random-runs.js'
import { rounds, timeLimit } from '../../support/length.js'

/** Checks one played run; throws what is wrong with it. */
function check(run: RandomRun, played: PlayedRun): void {
  const final = stateOf(played)
  checkStates(played, final)
  checkEvents(played)
  checkTranscript(closedTranscript(final))
  checkOutcome(run, played, final)
}

function stateOf({ final }: PlayedRun): RunState {
  if (final === null) throw new Error('Expected the run to have begun.')
  return final
}

function checkStates({ log, states }: PlayedRun, final: RunState): void {
  for (const { kept, state } of states) expect(asJson(fold(log.slice(0, kept)))).toEqual(state)
  expect(asJson(fold(log))).toEqual(asJson(final))
  // From the first request on the transcript only grows: nothing in it is edited or removed.
  for (const { state } of states) {
    const { transcript, phase } = state as { transcript: unknown[]; phase: { at: string } }
    if (phase.at === 'opening') continue
    expect(asJson(final.transcript.slice(0, transcript.length))).toEqual(transcript)
  }
}

function isEnd({ kind }: { readonly kind: string }): boolean {
  return kind === 'run_completed' || kind === 'run_failed'
}

function checkEvents({ log, streamed }: PlayedRun): void {
  expect(log.map(({ seq }) => seq)).toEqual(log.map((_, index) => index + 1))
  expect(log.filter(isEnd)).toHaveLength(1)
  expect(isEnd(log.at(-1)!)).toBe(true)
  const started = log.flatMap((event) => (event.kind === 'tool_call_started' ? [event.callId] : []))
  const completed = log.flatMap((event) => (event.kind === 'tool_call_completed' ? [event.callId] : []))
  expect([...completed].sort()).toEqual([...started].sort())
  expect(new Set(started).size).toBe(started.length)
  checkStreamed(log, streamed)
}

/** What is streamed is the log, with ephemeral events between that carry the number they follow. */
function checkStreamed(log: readonly DurableEvent[], streamed: readonly RunEvent[]): void {
  expect(asJson(streamed.filter(({ durable }) => durable))).toEqual(log)
  let seq = 0
  for (const event of streamed) {
    seq = event.durable ? seq + 1 : seq
    expect(event.seq).toBe(seq)
  }
  expect(streamed.filter(isEnd)).toHaveLength(1)
  expect(isEnd(streamed.at(-1)!)).toBe(true)
}

function checkOutcome(run: RandomRun, { result, error, begunTooLate, log }: PlayedRun, final: RunState): void {
  expect(begunTooLate).toEqual([])
  expect(final.usage.modelRequests).toBeLessThanOrEqual(run.modelRequests ?? Infinity)
  expect(final.usage.toolCalls).toBeLessThanOrEqual(run.toolCalls ?? Infinity)
  expect(final.usage.outputRetries).toBeLessThanOrEqual(run.outputRetries)
  const last = log.at(-1)!
  if (result !== null) {
    expect(last).toMatchObject({ kind: 'run_completed', stopReason: 'end_turn' })
    expect(result.transcript).toEqual(final.transcript)
    expect(result.resumeState).toEqual(asJson(final))
    return
  }
  expect(error).toBeInstanceOf(HarnessError)
  expect(last).toMatchObject({ kind: 'run_failed', code: error!.code, message: error!.message })
  const { code, message, status, retryable } = error!
  const why = { code, message, ...(status !== undefined && { status }), ...(retryable && { retryable }) }
  expect(final.phase).toMatchObject({ at: 'ended', stopReason: error!.run?.stopReason, error: why })
  expect(error!.run?.usage).toEqual(final.usage)
  expect(error!.run?.transcript).toEqual(closedTranscript(final))
  expect(error!.run?.resumeState).toEqual(asJson(final))
}

/** A run whose log failed: nothing happened behind that, and it says so, unless it had already failed by itself. */
function checkFailedStore({ log, final, streamed, error, begunTooLate }: PlayedRun, ownEnd: string | undefined): void {
  expect(begunTooLate).toEqual([])
  expect(asJson(fold(log) ?? null)).toEqual(asJson(final))
  checkStreamed(log, streamed)
  expect(streamed.at(-1)).toMatchObject({ kind: 'run_failed', durable: false, code: error?.code })
  if (error?.code === 'store_failure') expect(error.cause).toEqual(new Error('The disk is full.'))
  else expect(error?.code).toBe(ownEnd)
  if (final !== null) checkTranscript(error!.run!.transcript)
}

test(
  '159 folding the log of any run yields, at every prefix, the state that the run had, and a closed transcript at its end',
  async () => {
    await fc.assert(
      fc.asyncProperty(randomRun, async (run) => check(run, await play(run))),
      rounds(120, 8_000),
    )
  },
  timeLimit(120_000),
)

test(
  '160 wherever the log of a run fails, nothing starts after that, and the run ends with `store_failure`',
  async () => {
    await fc.assert(
      fc.asyncProperty(randomRun, fc.integer({ min: 1, max: 12 }), async (run, failingAppend) => {
        const played = await play(run, failingAppend)
        if (played.streamed.at(-1)?.durable === true) check(run, played)
        else checkFailedStore(played, (await play(run)).error?.code)
      }),
      rounds(80, 5_000),
    )
  },
  timeLimit(120_000),
)

test(
  '159 the random runs cover every way to end and every kind of event',
  async () => {
    const wanted = [
      ...['end_turn', 'cancelled', 'limit_reached', 'tool_retries_exceeded', 'provider_error', 'hook_failed'],
      ...[
        'output_validation_failed',
        'unexpected_model_behavior',
        'limit_warning',
        'model_retry',
        'tool_call_completed',
      ],
    ]
    const ends = new Set<string>()
    for (const run of fc.sample(randomRun, { numRuns: 250, seed: 1 })) {
      if (wanted.every((name) => ends.has(name))) break
      const { log, error } = await play(run)
      for (const { kind } of log) ends.add(kind)
      ends.add(error?.code ?? 'end_turn')
    }
    expect(wanted.filter((name) => !ends.has(name))).toEqual([])
  },
  timeLimit(120_000),
)
