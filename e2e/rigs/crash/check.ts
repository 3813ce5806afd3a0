import { isDeepStrictEqual } from 'node:util'
import type { Effect } from './counter.js'
import type { Outcome, Report, RunReport } from './report.js'
import { ONCE } from './tools.js'

interface Checked {
  readonly report: Report
  readonly effects: readonly Effect[]
  /** The report of the same run without kills. */
  readonly reference: Report
}

/** The problems of a run that was killed and recovered. */
export function problemsOf({ report, effects, reference }: Checked): readonly string[] {
  const { runs, outcome, recovered } = report
  const stopped = runs.some(wasStopped)
  const problems = [...problemsOfEffects(runs, effects), ...problemsOfLogs(runs), ...problemsOfReports(runs, stopped)]
  if (!isDeepStrictEqual(outcome, recovered))
    problems.push(`The result in the log is ${JSON.stringify(recovered)} instead of ${JSON.stringify(outcome)}.`)
  return [...problems, ...problemsOfOutcome(outcome, reference.outcome, stopped)]
}

/** How often a run failed or was cancelled; it was retried each time. */
function timesStopped({ kinds }: RunReport): number {
  return kinds.filter((kind) => kind === 'run_failed').length
}

/** The run, or one of its calls, was stopped; the process may have been killed before the run at the top had ended. */
function wasStopped(run: RunReport): boolean {
  return timesStopped(run) > 0 || run.calls.some(({ errorType }) => errorType === CANCELLED)
}

/** A child run that was stopped, and whose call was not made again. */
function endedInFailure({ kinds }: RunReport): boolean {
  return kinds.at(-1) === 'run_failed'
}

const UNKNOWN = 'UnknownOutcome'
const COMPLETED: ReadonlySet<string> = new Set(['run_completed'])
const ENDS: ReadonlySet<string> = new Set(['run_completed', 'run_failed'])

/** Calls without an effect of their own. */
const NO_EFFECT = new Set(['delegate', 'leave', 'flaky'])

/** The outcome of a call in progress when its run was cancelled: it may have had its effect. */
const CANCELLED = 'Cancelled'

/** Errors of calls without an effect. */
const NOT_DONE = new Set([UNKNOWN, 'ApprovalRejected', CANCELLED])

/** No effect that may happen once happens twice; every effect is in a log, and every missing effect is reported. */
function problemsOfEffects(runs: readonly RunReport[], effects: readonly Effect[]): string[] {
  const problems: string[] = []
  const counts = new Map<string, number>()
  for (const { key, toolName } of effects) {
    const count = (counts.get(key) ?? 0) + 1
    counts.set(key, count)
    if (count === 2 && ONCE.has(toolName)) problems.push(`${key} (${toolName}) was done twice.`)
  }
  const open = new Set(runs.filter(endedInFailure).flatMap(({ started }) => started))
  const calls = runs.flatMap((run) => run.calls)
  const byKey = new Map(calls.map((call) => [call.key, call]))
  if (byKey.size < calls.length) problems.push('A call was completed twice.')
  for (const key of counts.keys()) {
    const call = byKey.get(key)
    // A run that is cancelled after its process was killed keeps its open calls.
    if (call === undefined && !open.has(key)) problems.push(`${key} was done, and no log knows the call.`)
    if (call !== undefined && !call.ok && ![UNKNOWN, CANCELLED].includes(call.errorType ?? ''))
      problems.push(`${key} (${call.toolName}) was done, and its result is ${String(call.errorType)}.`)
  }
  for (const { key, toolName, ok, errorType } of calls) {
    if (NO_EFFECT.has(toolName) || counts.has(key)) continue
    if (ok || !NOT_DONE.has(errorType ?? '')) problems.push(`${key} (${toolName}) was not done, and nobody was told.`)
  }
  return problems
}

/**
 * Each run ends once. One that failed or was cancelled continues in its own log; child runs stay cancelled if the call or the
 * run that they worked for was stopped.
 */
function problemsOfLogs([top, ...below]: readonly RunReport[]): readonly string[] {
  if (top === undefined) return ['No log has the run.']
  const problems = [top, ...below].flatMap(({ runId, kinds, replayFailure }) => {
    if (replayFailure !== null) return [`The log of ${runId} cannot be replayed: ${replayFailure}`]
    const ends = kinds.filter((kind) => kind === 'run_completed').length
    const goesOn = kinds.some((kind, index) => ENDS.has(kind) && (kinds[index + 1] ?? 'run_started') !== 'run_started')
    return ends > 1 || goesOn ? [`The log of ${runId} continues after its end.`] : []
  })
  const allowed = [top, ...below].some(wasStopped) ? ENDS : COMPLETED
  const unfinished = [
    ...(COMPLETED.has(top.kinds.at(-1) ?? '') ? [] : [top]),
    ...below.filter(({ kinds }) => !allowed.has(kinds.at(-1) ?? '')),
  ]
  return [
    ...problems,
    ...unfinished.map(({ runId, kinds }) => `The log of ${runId} ends with ${String(kinds.at(-1))}.`),
  ]
}

/** Each run in the background has reported once, or at most once to a run that was stopped for good; without a failure, unless the run at the top was stopped. */
function problemsOfReports(runs: readonly RunReport[], stopped: boolean): readonly string[] {
  return runs.flatMap((run) => {
    const { runId, background, reported } = run
    const due = endedInFailure(run)
      ? background.filter((id) => reported.some((report) => report.runId === id))
      : background
    const expected = JSON.stringify(due.toSorted())
    const found = JSON.stringify(reported.map((report) => report.runId).toSorted())
    if (expected !== found) return [`${runId} started ${expected} in the background, and ${found} reported to it.`]
    const failed = reported.filter(({ ok }) => !ok && !stopped)
    return failed.map((report) => `${report.runId} was reported to ${runId} as failed.`)
  })
}

/** Equal to the reference, except for calls with an unknown outcome and the answers of people and the world to them. */
function problemsOfOutcome(outcome: Outcome, expected: Outcome, stopped: boolean): readonly string[] {
  const problems: string[] = []
  const [is, was] = [outcome, expected].map((whole) => comparable(whole, stopped))
  if (is !== was) problems.push(`The outcome is ${String(is)} instead of ${String(was)}.`)
  if (outcome.records.length !== expected.records.length) return [...problems, 'Some calls are missing.']
  expected.records.forEach(({ call, output }, index) => {
    const record = outcome.records[index]
    const isSame = JSON.stringify(record?.call) === JSON.stringify(call)
    const isExpected = record !== undefined && (RESOLVED_OTHERWISE.test(record.output) || record.output === output)
    if (!isSame || !isExpected) problems.push(`${call.id} (${call.name}) has the output ${String(record?.output)}.`)
  })
  return problems
}

/** The child runs of a run that was stopped may have done less. */
function comparable({ text, output, usage: { children, ...own } }: Outcome, stopped: boolean): string {
  return JSON.stringify({ text, output, usage: stopped ? own : { ...own, children } })
}

const RESOLVED_OTHERWISE = /"UnknownOutcome"|"Cancelled"|"content":"(wired before|it did)"/
