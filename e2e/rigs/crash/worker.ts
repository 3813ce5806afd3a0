// One process of the kill rig: begins or continues a run, answers its pending items, and reports the outcome. It kills
// itself at an append if its job says so; its parent may kill it at any moment.
import { writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Harness, HarnessError, textOf, toolCallsOf } from 'thinharness'
import type {
  Answer,
  DurableEvent,
  HarnessErrorCode,
  HarnessResult,
  JsonValue,
  PendingItem,
  RunStatus,
  TranscriptEntry,
} from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import type { Reply } from 'thinharness/testing'
import { z } from 'zod'
import { openStore } from '../store.js'
import { watchAppends } from './appends.js'
import { Counter } from './counter.js'
import { completeOnEngine } from './engine.js'
import { CLOSED } from './report.js'
import type { CallReport, Job, Outcome, Report, RunReport } from './report.js'
import { scenarioOf } from './scenario.js'
import type { ScenarioTurn } from './scenario.js'
import { toolsOf } from './tools.js'
import { Transcripts, viewPolicyOf } from './views.js'

const job = JSON.parse(process.argv[2] ?? '') as Job
const { store: storeName, place, runId, seed, counterPath } = job

const OUTPUT = z.object({ answer: z.string() })
type Result = HarnessResult<z.infer<typeof OUTPUT>>

/** Codes of a stopped run. The last two: it was cancelled while it waited for answers, or while they were given. */
const STOPPED: readonly HarnessErrorCode[] = ['cancelled', 'provider_error', 'invalid_state', 'run_owned']

const agents = scenarioOf(seed)
const counter = new Counter(counterPath)
const log = await openStore(storeName, place, 'crash')
const appends = watchAppends(log, job, stopRun)
/** Settles when the run was stopped in this process; null if it is not to be stopped. */
let stopping: Promise<unknown> | null = null
let isFailing = false
const transcripts = new Transcripts()
const harness = new Harness({
  model: scriptedAgents(),
  builtinTools: [],
  tools: toolsOf(counter, agents),
  outputType: OUTPUT,
  outputMode: 'prompted',
  toolRetries: 100,
  use: [transcripts.extension, ...viewPolicyOf(seed)],
  log,
})
let isClosing = false
process.once('SIGTERM', () => {
  isClosing = true
  void harness.close().then(() => process.exit(CLOSED))
})
print({ ready: true })
const result = await (storeName === 'dbos'
  ? completeOnEngine({ harness, log, url: place, runId, answersTo })
  : unlessClosing(complete()))
const { count } = appends
// The run has ended: its result now comes from the log alone.
const recovered = await unlessClosing(harness.recover(runId))
const runs = await runsBelow(runId)
const report: Report = { appends: count, outcome: outcomeOf(result, runs), recovered: outcomeOf(recovered, runs), runs }
print(report)
await harness.close()
await log.close?.()

/** Never settles in a process that is closing: its run was left. */
async function unlessClosing<T>(work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    if (isClosing) return new Promise<T>(() => undefined)
    throw error
  })
}

/** The model of all agents: its reply depends on the prompt and the turn alone, in whatever process it is asked. */
function scriptedAgents(): ScriptedModel {
  return new ScriptedModel().always(async ({ messages, transcript }) => {
    await sleep(Math.random() < 0.5 ? 0 : 2)
    const prompt = messages.find((message) => message.role === 'user')?.content
    if (prompt === 'top' && isFailing) fail()
    return replyOf(agents[String(prompt)] ?? [], transcripts.wholeOf(transcript))
  })
}

/** All calls come first, also if reports arrive in between; each answer is given once, and the last one again. */
function replyOf(turns: readonly ScenarioTurn[], transcript: readonly TranscriptEntry[]): string | Reply {
  const replies = transcript.filter((entry) => entry.role === 'assistant').map(({ parts }) => parts)
  const called = replies.map(toolCallsOf).filter(({ length }) => length > 0)
  const batches = turns.filter((turn) => typeof turn !== 'string')
  const calls = batches[called.length]
  // The model sees only some of the calls before.
  const before = called.flat().length
  if (calls !== undefined)
    return { calls: calls.map((call, index) => ({ ...call, callId: `call_${before + index + 1}` })) }
  const answers = turns.filter((turn) => typeof turn === 'string')
  return answers.find((answer) => !replies.some((parts) => textOf(parts) === answer)) ?? answers.at(-1) ?? ''
}

/** The run fails at its next request, or is cancelled. */
function stopRun(): void {
  isFailing = job.stop?.how === 'fail'
  stopping = isFailing ? Promise.resolve() : harness.cancel(runId).catch(() => undefined)
}

function fail(): never {
  isFailing = false
  throw new HarnessError('provider_error', 'The provider is down.')
}

/** Completes the run; one that failed or was cancelled is retried once in this process. */
async function complete(): Promise<Result> {
  return untilCompleted().catch(async (error: unknown) => {
    const hasStopped = error instanceof HarnessError && STOPPED.includes(error.code)
    if (stopping === null || !hasStopped) throw error
    await stopping
    return untilCompleted()
  })
}

async function untilCompleted(): Promise<Result> {
  let reached = await begin()
  while (reached.status === 'paused') {
    reached = await harness.resume(reached.resumeState, answersTo(reached.pending))
  }
  return reached
}

/** Begins or continues the run, once the claim of the killed process has ended. */
async function begin(): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await continued()
    } catch (error) {
      // The claim of a process that was killed while it claimed the run is valid for 5 s.
      const isClaimed = error instanceof HarnessError && ['run_owned', 'run_exists'].includes(error.code)
      if (!isClaimed || attempt === 40) throw error
      await sleep(250)
    }
  }
}

async function continued(): Promise<Result> {
  const status = await statusOfRun()
  if (status === null) return harness.run('top', { runId })
  return status === 'failed' || status === 'cancelled' ? harness.retry(runId) : harness.recover(runId)
}

/** Null for a log whose first record is incomplete: its run has not begun. */
async function statusOfRun(): Promise<RunStatus | null> {
  try {
    return (await log.inspect({ kind: 'run', id: runId }))?.status ?? null
  } catch (error) {
    const isEmpty = error instanceof HarnessError && error.message.includes('none of its events was stored')
    if (isEmpty && error.code === 'invalid_log') return null
    throw error
  }
}

/** Answers some items now and leaves the others for later. */
function answersTo(pending: readonly PendingItem[]): readonly Answer[] {
  return pending.map(answerTo).filter((_, index) => index % 2 === 0)
}

/** The same answer to the same call whenever it is asked for. */
function answerTo({ kind, callId, toolName, arguments: text, payload, path }: PendingItem): Answer {
  if (kind === 'question') return { callId, answer: (payload as { readonly question: number }).question }
  if (kind === 'unknown_outcome') {
    const key = `${String(path.at(-1))}:${String(callId.split('/').at(-1))}`
    const verdict: JsonValue = counter.has(key) ? { outcome: 'happened', result: 'it did' } : { outcome: 'run_again' }
    return { callId, answer: verdict }
  }
  const { n } = JSON.parse(text) as { readonly n: number }
  if (toolName === 'edited') return { callId, approved: true, editedArguments: { n: n + 1 } }
  return n % 5 === 0 ? { callId, approved: false, reason: 'No.' } : { callId, approved: true }
}

/** Requests that deliver reports are not counted: their number depends on which child run ends first. */
function outcomeOf({ text, output, usage, toolCallRecords }: Result, [top, ...below]: readonly RunReport[]): Outcome {
  const { toolCalls, outputRetries, children } = usage
  const modelRequests = usage.modelRequests - (top?.reportRequests ?? 0)
  const requestsBelow = below.reduce((sum, { reportRequests }) => sum - reportRequests, children.modelRequests)
  const counts = { modelRequests, toolCalls, outputRetries, children: { ...children, modelRequests: requestsBelow } }
  return { text, output, usage: counts, records: toolCallRecords }
}

/** The run and the runs below it, breadth first. */
async function runsBelow(topId: string): Promise<readonly RunReport[]> {
  const found: RunReport[] = []
  const ids = [topId]
  for (const id of ids) {
    found.push(await runReport(id))
    for await (const child of log.list({ parentRunId: id })) ids.push(child.runId)
  }
  return found
}

async function runReport(id: string): Promise<RunReport> {
  const calls: CallReport[] = []
  const started: string[] = []
  const background: string[] = []
  const reported: { runId: string; ok: boolean }[] = []
  const events: DurableEvent[] = []
  let reportRequests = 0
  let seq = 0
  const kinds: string[] = []
  for await (const event of log.read({ kind: 'run', id })) {
    events.push(event)
    if (event.seq !== seq + 1) throw new Error(`Run ${id} has event ${event.seq} after event ${seq}.`)
    seq = event.seq
    const isPause = event.kind === 'run_completed' && event.pending.length > 0
    kinds.push(isPause ? 'pause' : event.kind)
    if (event.kind === 'model_request_started' && event.requestKind === 'background_report') reportRequests += 1
    if (event.kind === 'background_reported') reported.push({ runId: event.childRunId, ok: event.ok })
    if (event.kind === 'tool_call_started') started.push(`${id}:${event.callId}`)
    if (event.kind === 'tool_call_completed') {
      const { callId, toolName, ok, errorType } = event
      calls.push({ key: `${id}:${callId}`, toolName, ok, errorType })
      background.push(...(event.background ?? []).map(({ childRunId }) => childRunId))
    }
  }
  const isReplayed = id === runId && kinds.at(-1) === 'run_completed'
  const replayFailure = isReplayed ? await failureOfReplay(events) : null
  return { runId: id, kinds, calls, started, background, reported, reportRequests, replayFailure }
}

/** The recorded views are checked with everything else. */
async function failureOfReplay(events: readonly DurableEvent[]): Promise<string | null> {
  try {
    await harness.replay(events)
    return null
  } catch (error) {
    return String(error)
  }
}

function print(line: Report | { readonly ready: true }): void {
  writeSync(1, `${JSON.stringify(line)}\n`)
}
