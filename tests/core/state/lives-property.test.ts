import fc from 'fast-check'
import { expect, test } from 'vitest'
import { HarnessError } from 'thinharness'
import type { DurableEvent } from 'thinharness'
import { fold } from '#core/loop/apply.js'
import { closedTranscript } from '#core/state/closing.js'
import { checkLog, checkTranscript } from './invariants.js'
import { asJson } from './random-runs.js'
import { leftBy, live, randomLife } from './random-lives.js'
import type { Stretch } from './random-lives.js'
import { rounds, timeLimit } from '../../support/length.js'

function ofRun(events: readonly DurableEvent[], runId: string): DurableEvent[] {
  return events.filter((event) => event.runId === runId)
}

/** What one process left: every log is whole, every conversation closed once its run has ended. */
function checkStretch({ kept, end }: Stretch): void {
  for (const runId of new Set(kept.map((event) => event.runId))) {
    const events = ofRun(kept, runId)
    checkLog(events)
    const state = fold(events)
    if (state?.phase.at === 'ended') checkTranscript(closedTranscript(state))
  }
  const top = fold(ofRun(kept, 'run_life'))!
  expect(top.phase.at).toBe('ended')
  if (end instanceof HarnessError) {
    expect(end.code).toBe('cancelled')
    expect(asJson(end.run?.transcript)).toEqual(asJson(closedTranscript(top)))
  } else {
    expect(end.stopReason).toBe('end_turn')
    expect(asJson(end.transcript)).toEqual(asJson(top.transcript))
  }
}

/** H6: what a process found is still there when it has ended, entry by entry. */
function checkGrown(before: readonly DurableEvent[], after: readonly DurableEvent[]): void {
  expect(after.slice(0, before.length)).toEqual(before)
  for (const runId of new Set(before.map((event) => event.runId))) {
    const found = fold(ofRun(before, runId))
    // The prompt may grow until its first request.
    if (found === undefined || found.phase.at === 'opening') continue
    const was = asJson(found.transcript) as unknown[]
    expect((asJson(fold(ofRun(after, runId))?.transcript) as unknown[]).slice(0, was.length)).toEqual(was)
  }
}

/** No call that had started in what was left is run again, unless a person wanted that. */
function checkEffects(before: readonly DurableEvent[], { effects, kept }: Stretch): void {
  expect(new Set(effects).size).toBe(effects.length)
  const started = before.flatMap((event) =>
    event.kind === 'tool_call_started' ? [`${event.runId}:${event.callId}`] : [],
  )
  const wanted = kept.flatMap((event) =>
    event.kind === 'answer_received' && 'answer' in event.answer && asJson(event.answer.answer) !== null
      ? [`${event.runId}:${event.callId}`]
      : [],
  )
  expect(effects.filter((key) => started.includes(key) && !wanted.includes(key))).toEqual([])
}

test(
  '159 the invariants of a transcript hold after any aborts, kills, resumes and recoveries in any order',
  async () => {
    await fc.assert(
      fc.asyncProperty(randomLife, async (life) => {
        const stretches = await live(life)
        stretches.forEach((stretch, index) => {
          const earlier = stretches[index - 1]
          const kill = life.kills[index - 1]
          const before = earlier === undefined || kill === undefined ? [] : leftBy(kill, earlier)
          checkStretch(stretch)
          checkGrown(before, stretch.kept)
          checkEffects(before, stretch)
        })
      }),
      rounds(100, 10_000),
    )
  },
  timeLimit(120_000),
)

test('159 the random lives are killed, aborted and resumed, and wait for everything', async () => {
  const wanted = [
    ...['end_turn', 'cancelled', 'fresh', 'resumed', 'recovered', 'report', 'retry', 'pause', 'model_retry'],
    'background_reported',
    ...['approval 1', 'approval 2', 'question 1', 'question 2', 'unknown_outcome 1', 'unknown_outcome 2'],
  ]
  const seen = new Set<string>()
  for (const life of fc.sample(randomLife, { numRuns: 200, seed: 1 })) {
    if (wanted.every((each) => seen.has(each))) break
    for (const { kept, end } of await live(life)) {
      seen.add(end instanceof HarnessError ? end.code : end.stopReason)
      for (const event of kept) {
        seen.add(event.kind)
        if (event.kind === 'run_started') seen.add(event.begun)
        if (event.kind === 'tool_call_interrupted') seen.add(event.settledBy)
        if (event.kind === 'approval_requested')
          event.items.forEach(({ kind, path }) => seen.add(`${kind} ${path.length}`))
      }
    }
  }
  expect(wanted.filter((each) => !seen.has(each))).toEqual([])
}, 120_000)
