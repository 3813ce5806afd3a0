// The kill rig: generated runs in processes that are killed (SIGKILL) or asked to stop (SIGTERM: they close their harness), before
// and after every append to the log and at random moments. Runs are also cancelled or made to fail, and retried; appends may
// take time. Other processes continue the runs and may be stopped too. Effects on the world are counted outside.
//   npm run crash -- [--store file|sqlite|postgres|dbos] [--url postgres://…] [--kills 2000] [--terms 2000] [--seed 1] [--lanes 2]
//     [--minutes 30]
// Ends early after `--minutes`, and reports what it did.
import { fork } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { problemsOf } from './check.js'
import { Counter } from './counter.js'
import { between, oneOf, randomOf, shuffled } from './random.js'
import { CLOSED } from './report.js'
import type { Interruption, Job, Kill, Report, Stop } from './report.js'

/** A run that is killed, and the report of the same run without kills. */
interface Round {
  readonly seed: number
  readonly runId: string
  readonly reference: Report
  /** Null: at a random moment. */
  readonly firstKill: Kill | null
}

/** How a process was ended from outside. */
type Signal = 'SIGKILL' | 'SIGTERM'

interface ProcessEnd {
  /** Null if it ended by itself. */
  readonly by: Signal | null
  /** Null if the run has not ended. */
  readonly report: Report | null
  readonly log: string
}

/** A process without output for so long hangs. */
const PATIENCE_MS = 180_000
/** How a process ends at an append. */
const WAYS: readonly Kill['when'][] = ['before', 'after', 'close', 'close']
/** The most kills of one run. */
const KILLS_A_RUN = 4

const { values } = parseArgs({
  options: {
    store: { type: 'string', default: 'file' },
    url: { type: 'string' },
    kills: { type: 'string', default: '2000' },
    terms: { type: 'string' },
    seed: { type: 'string', default: '1' },
    lanes: { type: 'string', default: '2' },
    minutes: { type: 'string' },
  },
})
/** The ends of each kind. An engine ends its runs in its own way, and retries them. */
const isEngine = values.store === 'dbos'
const wanted: Readonly<Record<Signal, number>> = {
  SIGKILL: Number(values.kills),
  SIGTERM: isEngine ? 0 : Number(values.terms ?? values.kills),
}
const random = randomOf(Number(values.seed))
const endsAt = values.minutes === undefined ? Infinity : Date.now() + Number(values.minutes) * 60_000
const isDatabase = values.store === 'postgres' || values.store === 'dbos'
if (isDatabase && values.url === undefined)
  throw new Error(`With \`--store ${values.store}\` the rig needs \`--url postgres://…\`.`)
const folder = await mkdtemp(join(tmpdir(), 'thinharness-crash-'))
const ends: Record<Signal, number> = { SIGKILL: 0, SIGTERM: 0 }
const totals = { runs: 0, retried: 0, unknown: 0, views: 0, prepared: 0, problems: 0 }

try {
  const all = rounds()
  await Promise.all(Array.from({ length: Number(values.lanes) }, () => lane(all)))
} finally {
  await rm(folder, { recursive: true, force: true, maxRetries: 10 })
}
console.log(
  `${values.store}, seed ${values.seed}: ${ends.SIGKILL} SIGKILL and ${ends.SIGTERM} SIGTERM in ${totals.runs} runs, ${totals.retried} retries, ${totals.unknown} calls reported as unknown, ${totals.views} view changes, ${totals.prepared} observations in the background, ${totals.problems} problems.`,
)
process.exitCode = totals.problems === 0 ? 0 : 1

function missing(signal: Signal): boolean {
  return ends[signal] < wanted[signal]
}

function isOver(): boolean {
  return Date.now() >= endsAt || (!missing('SIGKILL') && !missing('SIGTERM'))
}

/** The ways of ending at an append that are still to be tried. */
function ways(): readonly Kill['when'][] {
  return [
    ...(missing('SIGKILL') ? (['before', 'after'] as const) : []),
    ...(missing('SIGTERM') ? (['close'] as const) : []),
  ]
}

async function lane(all: AsyncIterable<Round>): Promise<void> {
  for await (const round of all) await play(round)
}

/** Scenario after scenario: for each, a round for every append of its undisturbed run, before and after it. */
async function* rounds(): AsyncGenerator<Round> {
  for (let number = 1; !isOver(); number++) {
    const seed = between(random, 1, 2 ** 31)
    const reference = await undisturbed(seed, `run_${values.seed}_${number}_reference`)
    const kills = Array.from({ length: reference.appends }, (_, index) =>
      WAYS.map((when): Kill => ({ at: index + 1, when })),
    )
    for (const [index, kill] of shuffled(random, kills.flat()).entries()) {
      if (isOver()) return
      if (!ways().includes(kill.when)) continue
      const firstKill = random() < 0.25 ? null : kill
      yield { seed, reference, firstKill, runId: `run_${values.seed}_${number}_${index}` }
    }
  }
}

async function undisturbed(seed: number, runId: string): Promise<Report> {
  const counterPath = join(folder, `${runId}.effects`)
  const { report, log } = await inProcess({ seed, runId, counterPath })
  if (report === null) throw new Error(`The undisturbed run of seed ${seed} failed:\n${log}`)
  const problems = problemsOf({ report, effects: new Counter(counterPath).read(), reference: report })
  if (problems.length > 0) throw new Error(`The undisturbed run of seed ${seed} is wrong:\n${problems.join('\n')}`)
  return report
}

/** The run is killed at `firstKill` and a few more times, and then runs to its end. */
async function play({ seed, reference, firstKill, runId }: Round): Promise<void> {
  const counterPath = join(folder, `${runId}.effects`)
  const kills = [firstKill, ...Array.from({ length: between(random, 0, KILLS_A_RUN - 1) }, laterKill)]
  const appendMs = random() < 0.2 ? between(random, 1, 10) : undefined
  const isRetried = !isEngine && random() < 0.4
  const tried: object[] = []
  let end: ProcessEnd | null = null
  for (const kill of [...kills, undefined]) {
    const afterMs = kill === null ? between(random, 0, 150) : undefined
    const stop = isRetried && random() < 0.7 ? stopBefore(kill) : undefined
    const interruption: Interruption = { kill: kill ?? undefined, stop, appendMs }
    tried.push({ ...interruption, afterMs })
    end = await inProcess({ seed, runId, counterPath, ...interruption }, afterMs)
    if (end.by === null) break
    count(end.by)
  }
  totals.runs += 1
  for (const problem of problemsIn(end, counterPath, reference)) {
    totals.problems += 1
    console.error(`seed ${seed}, ${runId}, processes ${JSON.stringify(tried)}: ${problem}`)
  }
}

/** Prints the progress now and then: the long form takes half an hour. */
function count(signal: Signal): void {
  ends[signal] += 1
  const sum = ends.SIGKILL + ends.SIGTERM
  if (sum % 100 === 0) console.error(`${ends.SIGKILL} SIGKILL, ${ends.SIGTERM} SIGTERM, ${totals.problems} problems`)
}

function problemsIn(end: ProcessEnd | null, counterPath: string, reference: Report): readonly string[] {
  const report = end?.report ?? null
  if (report === null) return [`It did not end:\n${end?.log ?? ''}`]
  totals.retried += (report.runs[0]?.kinds ?? []).filter((kind) => kind === 'run_failed').length
  const kinds = report.runs.flatMap((run) => run.kinds)
  totals.views += kinds.filter((kind) => kind === 'view_changed').length
  totals.prepared += kinds.filter((kind) => kind === 'view_prepared').length
  const calls = report.runs.flatMap((run) => run.calls)
  totals.unknown += calls.filter(({ errorType }) => errorType === 'UnknownOutcome').length
  return problemsOf({ report, effects: new Counter(counterPath).read(), reference })
}

/** The signal for a process that ends at a random moment. */
function signalNow(): Signal {
  if (!missing('SIGTERM')) return 'SIGKILL'
  return !missing('SIGKILL') || random() < 0.5 ? 'SIGTERM' : 'SIGKILL'
}

/** At one of the next appends, or (null) at a random moment. */
function laterKill(): Kill | null {
  const when = oneOf(random, ways())
  return random() < 0.3 || when === undefined ? null : { at: between(random, 1, 12), when }
}

/** Before the kill, so that most kills come while the run is being retried. */
function stopBefore(kill: Kill | null | undefined): Stop {
  return { at: between(random, 1, kill?.at ?? 12), how: oneOf(random, ['cancel', 'fail']) }
}

/** One process, until it has ended or was killed: by itself, or `afterMs` after it was ready. */
function inProcess(part: Omit<Job, 'store' | 'place'>, afterMs?: number): Promise<ProcessEnd> {
  // Each run has a folder of its own: its child runs are looked up among all runs of the store.
  const place = values.url ?? join(folder, part.runId)
  const job: Job = { store: values.store, place, ...part }
  const worker = fork(fileURLToPath(new URL('worker.js', import.meta.url)), [JSON.stringify(job)], { silent: true })
  return new Promise((resolve) => {
    let out = ''
    let log = ''
    let timer = setTimeout(() => worker.kill('SIGABRT'), PATIENCE_MS)
    worker.stdout?.setEncoding('utf8').on('data', (text: string) => {
      out += text
      if (afterMs === undefined || !out.includes('"ready"')) return
      clearTimeout(timer)
      timer = setTimeout(() => worker.kill(signalNow()), afterMs)
    })
    worker.stderr?.setEncoding('utf8').on('data', (text: string) => (log += text))
    worker.on('close', (code, signal) => {
      clearTimeout(timer)
      const lastLine = out.trim().split('\n').at(-1) ?? ''
      const report = code === 0 ? (JSON.parse(lastLine) as Report) : null
      const by = signal === 'SIGKILL' ? signal : code === CLOSED ? 'SIGTERM' : null
      resolve({ by, report, log: `${log}(${signal ?? String(code)})` })
    })
  })
}
