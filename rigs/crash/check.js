import { ONCE } from './tools.js'

/** Calls that do nothing to the world themselves. */
const NO_EFFECT = new Set(['delegate', 'leave', 'flaky'])

/** How a call ends of which nothing was done, and that says so. */
const NOT_DONE = new Set(['UnknownOutcome', 'ApprovalRejected'])

/** What is wrong with a run that was killed and went on; `reference` is the same run, never killed. */
export function problemsOf({ said, effects, reference }) {
  return [...ofEffects(said.runs, effects), ...ofLogs(said.runs), ...ofReports(said.runs), ...ofResult(said, reference)]
}

/** No effect twice that may be had once; none done in silence, none told that was not done. */
function ofEffects(runs, effects) {
  const problems = []
  const counts = new Map()
  for (const { key } of effects) counts.set(key, (counts.get(key) ?? 0) + 1)
  const calls = runs.flatMap((run) => run.calls)
  const byKey = new Map(calls.map((call) => [call.key, call]))
  if (byKey.size < calls.length) problems.push('A call was completed twice.')
  for (const [key, count] of counts) {
    const call = byKey.get(key)
    if (call === undefined) problems.push(`${key} was done, and no log knows the call.`)
    else if (count > 1 && ONCE.has(call.toolName)) problems.push(`${key} (${call.toolName}) was done ${count} times.`)
    else if (!call.ok && call.errorType !== 'UnknownOutcome')
      problems.push(`${key} (${call.toolName}) was done, and the model was told ${call.errorType}.`)
  }
  for (const { key, toolName, ok, errorType } of calls) {
    if (NO_EFFECT.has(toolName) || counts.has(key)) continue
    if (ok || !NOT_DONE.has(errorType)) problems.push(`${key} (${toolName}) was not done, and nobody was told.`)
  }
  return problems
}

function ofLogs(runs) {
  return runs.flatMap(({ runId, end }) => (end === 'run_completed' ? [] : [`The log of ${runId} ends with ${end}.`]))
}

/** Whatever was left in the background has reported, once and well. */
function ofReports(runs) {
  return runs.flatMap(({ runId, left, reported }) => {
    const [expected, told] = [left, reported.map((report) => report.runId)].map((ids) => JSON.stringify(ids.toSorted()))
    const failed = reported
      .filter(({ ok }) => !ok)
      .map((report) => `${report.runId} was reported to ${runId} as failed.`)
    return expected === told ? failed : [`${runId} left ${expected}, and was told of ${told}.`]
  })
}

/** Equal to the reference, but for what was reported as unknown and what a person or the world said instead. */
function ofResult({ outcome, again }, reference) {
  const problems = []
  if (JSON.stringify(outcome) !== JSON.stringify(again)) problems.push('The log tells another result than the run had.')
  const expected = reference.outcome
  for (const field of ['text', 'output', 'usage']) {
    const [is, was] = [JSON.stringify(outcome[field]), JSON.stringify(expected[field])]
    if (is !== was) problems.push(`\`${field}\` is ${is}, and would be ${was}.`)
  }
  if (outcome.records.length !== expected.records.length) return [...problems, 'Some calls are missing.']
  outcome.records.forEach((record, index) => {
    const before = expected.records[index]
    const same = JSON.stringify(record.call) === JSON.stringify(before.call)
    const told = SETTLED_OTHERWISE.test(record.output) || record.output === before.output
    if (!same || !told) problems.push(`${before.call.id} (${before.call.name}) was answered by ${record.output}.`)
  })
  return problems
}

const SETTLED_OTHERWISE = /"UnknownOutcome"|"content":"(wired before|it did)"/
