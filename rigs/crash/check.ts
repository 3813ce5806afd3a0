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
  const problems = [...problemsOfEffects(runs, effects), ...problemsOfLogs(runs), ...problemsOfReports(runs)]
  if (JSON.stringify(outcome) !== JSON.stringify(recovered))
    problems.push('The result in the log differs from the result of the run.')
  return [...problems, ...problemsOfOutcome(outcome, reference.outcome)]
}

/** Calls without an effect of their own. */
const NO_EFFECT = new Set(['delegate', 'leave', 'flaky'])

/** Errors of calls without an effect. */
const NOT_DONE = new Set(['UnknownOutcome', 'ApprovalRejected'])

/** No effect that may happen once happens twice; every effect is in a log, and every missing effect is reported. */
function problemsOfEffects(runs: readonly RunReport[], effects: readonly Effect[]): string[] {
  const problems: string[] = []
  const counts = new Map<string, number>()
  for (const { key } of effects) counts.set(key, (counts.get(key) ?? 0) + 1)
  const calls = runs.flatMap((run) => run.calls)
  const byKey = new Map(calls.map((call) => [call.key, call]))
  if (byKey.size < calls.length) problems.push('A call was completed twice.')
  for (const [key, count] of counts) {
    const call = byKey.get(key)
    if (call === undefined) problems.push(`${key} was done, and no log knows the call.`)
    else if (count > 1 && ONCE.has(call.toolName)) problems.push(`${key} (${call.toolName}) was done ${count} times.`)
    else if (!call.ok && call.errorType !== 'UnknownOutcome')
      problems.push(`${key} (${call.toolName}) was done, and its result is ${String(call.errorType)}.`)
  }
  for (const { key, toolName, ok, errorType } of calls) {
    if (NO_EFFECT.has(toolName) || counts.has(key)) continue
    if (ok || !NOT_DONE.has(errorType ?? '')) problems.push(`${key} (${toolName}) was not done, and nobody was told.`)
  }
  return problems
}

function problemsOfLogs(runs: readonly RunReport[]): readonly string[] {
  const unfinished = runs.filter(({ end }) => end !== 'run_completed')
  return unfinished.map(({ runId, end }) => `The log of ${runId} ends with ${String(end)}.`)
}

/** Each run in the background has reported once, without a failure. */
function problemsOfReports(runs: readonly RunReport[]): readonly string[] {
  return runs.flatMap(({ runId, background, reported }) => {
    const expected = JSON.stringify(background.toSorted())
    const found = JSON.stringify(reported.map((report) => report.runId).toSorted())
    if (expected !== found) return [`${runId} started ${expected} in the background, and ${found} reported to it.`]
    const failed = reported.filter(({ ok }) => !ok)
    return failed.map((report) => `${report.runId} was reported to ${runId} as failed.`)
  })
}

/** Equal to the reference, except for calls with an unknown outcome and the answers of people and the world to them. */
function problemsOfOutcome(outcome: Outcome, expected: Outcome): readonly string[] {
  const problems: string[] = []
  for (const field of ['text', 'output', 'usage'] as const) {
    const [is, was] = [JSON.stringify(outcome[field]), JSON.stringify(expected[field])]
    if (is !== was) problems.push(`\`${field}\` is ${is} instead of ${was}.`)
  }
  if (outcome.records.length !== expected.records.length) return [...problems, 'Some calls are missing.']
  expected.records.forEach(({ call, output }, index) => {
    const record = outcome.records[index]
    const isSame = JSON.stringify(record?.call) === JSON.stringify(call)
    const isExpected = record !== undefined && (RESOLVED_OTHERWISE.test(record.output) || record.output === output)
    if (!isSame || !isExpected) problems.push(`${call.id} (${call.name}) has the output ${String(record?.output)}.`)
  })
  return problems
}

const RESOLVED_OTHERWISE = /"UnknownOutcome"|"content":"(wired before|it did)"/
