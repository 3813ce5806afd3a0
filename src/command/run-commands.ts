import { existsSync, readFileSync } from 'node:fs'
import { text as textOfStream } from 'node:stream/consumers'
import type { Answer, RunSummary } from '../index.js'
import { conduct } from './follow-to-end.js'
import type { ConductOptions } from './follow-to-end.js'
import { CommandError, EXIT, exitCodeOf } from './exit-codes.js'
import { askPeople } from './terminal/people.js'
import { isReference, openSetup, storedFlags } from './setup.js'
import type { RunFlags } from './setup.js'
import { eventsOf, findRun, openRuns } from './stored-runs.js'
import { oneLine } from './terminal/terminal.js'
import type { Terminal } from './terminal/terminal.js'

interface ShownFlags {
  readonly json?: boolean
  readonly deltas?: boolean
}

export interface NewRunFlags extends RunFlags, ShownFlags {
  readonly resumeFrom?: string
}

/** `run PROMPT`: `-` is standard input. */
export async function run(prompt: string, flags: NewRunFlags, terminal: Terminal): Promise<number> {
  const said = prompt === '-' ? await textOfStream(terminal.stdin) : prompt
  if (said.trim() === '') throw new CommandError('The prompt is empty.')
  const log = await openRuns(flags.runs)
  const { harness, options } = await openSetup(flags, log)
  try {
    // Nothing is written without a key.
    await harness.connect()
    const history = flags.resumeFrom === undefined ? null : await historyOf(flags.resumeFrom, flags.runs)
    return await conduct((given) => harness.stream(said, { ...given, ...(history !== null && { history }) }), {
      ...{ harness, options, terminal },
      ...shownAs(flags),
    })
  } finally {
    await harness.close()
    await log.close?.()
  }
}

/** The conversation of a run that has ended. */
async function historyOf(named: string, runs: string): Promise<{ readonly runId: string }> {
  const { summary } = await findRun(named, runs)
  return { runId: summary.runId }
}

export interface ResumeFlags extends RunFlags, ShownFlags {
  readonly answers?: string
  readonly approve?: readonly string[]
  readonly reject?: readonly string[]
  readonly reason?: string
}

/** `resume RUN`: asks for what waits, or takes the answers that are given. */
export async function resume(named: string, flags: ResumeFlags, terminal: Terminal): Promise<number> {
  const { log, summary } = await findRun(named, flags.runs)
  const { runId, status, pending } = summary
  if (status === 'running') throw new CommandError(`Run \`${runId}\` is under way in another process.`, EXIT.elsewhere)
  if (status !== 'paused') throw new CommandError(`Run \`${runId}\` waits for nobody: it is ${status}.`)
  const answers =
    givenAnswers(flags) ?? (terminal.canAsk && flags.json !== true ? await askPeople(pending, terminal) : null)
  if (answers === null) {
    terminal.out(`${JSON.stringify(pending, null, 2)}\n`)
    terminal.say(runId)
    return EXIT.waits
  }
  return goOn(
    summary,
    log,
    { flags, terminal },
    (harness) => (given) => harness.streamResumeRun(runId, [...answers], given),
  )
}

function givenAnswers({ answers, approve = [], reject = [], reason }: ResumeFlags): readonly Answer[] | null {
  const read = answers === undefined ? [] : answersIn(answers)
  const decided: Answer[] = [
    ...approve.map((callId) => ({ callId, approved: true })),
    ...reject.map((callId) => ({ callId, approved: false, ...(reason !== undefined && { reason }) })),
  ]
  const all = [...read, ...decided]
  return all.length === 0 ? null : all
}

function answersIn(path: string): readonly Answer[] {
  if (!existsSync(path)) throw new CommandError(`There is no file \`${path}\` with answers.`)
  try {
    const parsed: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (Array.isArray(parsed)) return parsed as Answer[]
  } catch {
    // Said below.
  }
  throw new CommandError(
    `Expected \`${path}\` to be a JSON list of answers, such as [{ "callId": "…", "approved": true }].`,
  )
}

/** `recover [RUN]`: that run, or all that were interrupted, one after the other. Gives the worst code. */
export async function recover(
  named: string | undefined,
  flags: RunFlags & ShownFlags,
  terminal: Terminal,
): Promise<number> {
  if (named !== undefined) {
    const { log, summary } = await findRun(named, flags.runs)
    return goOn(summary, log, { flags, terminal }, (harness) => (given) => harness.streamRecover(summary.runId, given))
  }
  const log = await openRuns(flags.runs)
  const waiting: RunSummary[] = []
  for await (const summary of log.list({ status: ['interrupted', 'queued'], parentRunId: null })) waiting.push(summary)
  if (waiting.length === 0) terminal.say('No run was interrupted.')
  let worst: number = EXIT.done
  for (const summary of waiting.reverse()) {
    terminal.say(terminal.paint('bold', summary.runId))
    const code = await goOn(
      summary,
      log,
      { flags, terminal },
      (harness) => (given) => harness.streamRecover(summary.runId, given),
    )
    // Others may have it by now.
    if (code !== EXIT.elsewhere) worst = Math.max(worst, code)
  }
  return worst
}

/** `retry RUN`: goes on with a run that failed or was cancelled. */
export async function retry(named: string, flags: RunFlags & ShownFlags, terminal: Terminal): Promise<number> {
  const { log, summary } = await findRun(named, flags.runs)
  return goOn(summary, log, { flags, terminal }, (harness) => (given) => harness.streamRetry(summary.runId, given))
}

export interface ForkFlags extends RunFlags, ShownFlags {
  readonly at: number
  readonly prompt?: string
}

/** `fork RUN --at TURN`: a new run from there. */
export async function fork(named: string, flags: ForkFlags, terminal: Terminal): Promise<number> {
  const found = await findRun(named, flags.runs)
  const events = await eventsOf(found)
  const point = { afterTurn: flags.at, ...(flags.prompt !== undefined && { prompt: flags.prompt }) }
  const log = await openRuns(flags.runs)
  return goOn(found.summary, log, { flags, terminal }, (harness) => (given) => harness.streamFork(events, point, given))
}

interface GoingOn {
  readonly flags: RunFlags & ShownFlags
  readonly terminal: Terminal
}

type Starting = (harness: ConductOptions['harness']) => Parameters<typeof conduct>[0]

/** A run that is in the log goes on with the settings it was begun with, unless others are given. */
async function goOn(
  summary: RunSummary,
  log: Awaited<ReturnType<typeof openRuns>>,
  { flags, terminal }: GoingOn,
  starting: Starting,
): Promise<number> {
  const { provider, model, metadata } = summary
  const known = provider === null || model === null ? undefined : `${provider}:${model}`
  // A session of another agent goes on with the model that is chosen here.
  const isOwn = known !== undefined && isReference(known) && metadata['imported'] === undefined
  const named = flags.model ?? (isOwn ? known : undefined)
  const { harness, options } = await openSetup(
    { ...flags, ...(named !== undefined && { model: named }) },
    log,
    storedFlags(metadata),
  )
  const { metadata: _own, ...kept } = options
  try {
    return await conduct(starting(harness), { harness, options: kept, terminal, turns: summary, ...shownAs(flags) })
  } catch (error) {
    if (error instanceof CommandError && error.exitCode === exitCodeOf('run_owned')) {
      terminal.say(oneLine(error.message))
      return EXIT.elsewhere
    }
    throw error
  } finally {
    await harness.close()
  }
}

function shownAs({ json = false, deltas = false }: ShownFlags): ShownFlags {
  return { json, deltas }
}
