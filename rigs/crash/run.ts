// The kill rig: generated runs in processes that are killed with SIGKILL, before and after every append to the log and at
// random moments, or get SIGTERM and close their harness; other processes continue the runs and may be killed too. Effects on the world are counted outside.
//   npm run crash -- [--store file|sqlite|postgres|dbos] [--url postgres://…] [--kills 2000] [--seed 1] [--lanes 2]
import { fork } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { problemsOf } from './check.js'
import { Counter } from './counter.js'
import type { Kill } from './kill.js'
import { between, oneOf, randomOf, shuffled } from './random.js'
import { CLOSED } from './report.js'
import type { Job, Report } from './report.js'

/** A run that is killed, and the report of the same run without kills. */
interface Round {
  readonly seed: number
  readonly runId: string
  readonly reference: Report
  /** Null: at a random moment. */
  readonly firstKill: Kill | null
}

interface ProcessEnd {
  readonly killed: boolean
  /** Null if the run has not ended. */
  readonly report: Report | null
  readonly log: string
}

/** A process without output for so long hangs. */
const PATIENCE_MS = 60_000
/** The most kills of one run. */
const KILLS_A_RUN = 4

const { values } = parseArgs({
  options: {
    store: { type: 'string', default: 'file' },
    url: { type: 'string' },
    kills: { type: 'string', default: '2000' },
    seed: { type: 'string', default: '1' },
    lanes: { type: 'string', default: '2' },
  },
})
const wanted = Number(values.kills)
/** How a process ends at an append. An engine ends its runs in its own way. */
const WAYS: readonly [Kill['when'], ...Kill['when'][]] =
  values.store === 'dbos' ? ['before', 'after'] : ['before', 'after', 'close']
const random = randomOf(Number(values.seed))
const isDatabase = values.store === 'postgres' || values.store === 'dbos'
if (isDatabase && values.url === undefined)
  throw new Error(`With \`--store ${values.store}\` the rig needs \`--url postgres://…\`.`)
const folder = await mkdtemp(join(tmpdir(), 'thinharness-crash-'))
const totals = { kills: 0, runs: 0, unknown: 0, problems: 0 }

try {
  const all = rounds()
  await Promise.all(Array.from({ length: Number(values.lanes) }, () => lane(all)))
} finally {
  await rm(folder, { recursive: true, force: true })
}
console.log(
  `${values.store}, seed ${values.seed}: ${totals.kills} kills in ${totals.runs} runs, ${totals.unknown} calls reported as unknown, ${totals.problems} problems.`,
)
process.exitCode = totals.problems === 0 && totals.kills >= wanted ? 0 : 1

async function lane(all: AsyncIterable<Round>): Promise<void> {
  for await (const round of all) await play(round)
}

/** Scenario after scenario: for each, a round for every append of its undisturbed run, before and after it. */
async function* rounds(): AsyncGenerator<Round> {
  for (let number = 1; totals.kills < wanted; number++) {
    const seed = between(random, 1, 2 ** 31)
    const reference = await undisturbed(seed, `run_${values.seed}_${number}_reference`)
    const kills = Array.from({ length: reference.appends }, (_, index) =>
      WAYS.map((when): Kill => ({ at: index + 1, when })),
    )
    for (const [index, kill] of shuffled(random, kills.flat()).entries()) {
      if (totals.kills >= wanted) return
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
  let end: ProcessEnd | null = null
  for (const kill of [...kills, undefined]) {
    const afterMs = kill === null ? between(random, 0, 150) : undefined
    end = await inProcess({ seed, runId, counterPath, kill: kill ?? undefined }, afterMs)
    if (!end.killed) break
    countKill()
  }
  totals.runs += 1
  for (const problem of problemsIn(end, counterPath, reference)) {
    totals.problems += 1
    console.error(`seed ${seed}, ${runId}, kills ${JSON.stringify(kills)}: ${problem}`)
  }
}

/** Prints the progress now and then: the long form takes a quarter of an hour. */
function countKill(): void {
  totals.kills += 1
  if (totals.kills % 100 === 0) console.error(`${totals.kills} kills, ${totals.problems} problems`)
}

function problemsIn(end: ProcessEnd | null, counterPath: string, reference: Report): readonly string[] {
  const report = end?.report ?? null
  if (report === null) return [`It did not end:\n${end?.log ?? ''}`]
  const calls = report.runs.flatMap((run) => run.calls)
  totals.unknown += calls.filter(({ errorType }) => errorType === 'UnknownOutcome').length
  return problemsOf({ report, effects: new Counter(counterPath).read(), reference })
}

/** A process is killed, or told to close. */
function signalOf(): 'SIGKILL' | 'SIGTERM' {
  return WAYS.includes('close') && random() < 0.4 ? 'SIGTERM' : 'SIGKILL'
}

/** At one of the next appends, or (null) at a random moment. */
function laterKill(): Kill | null {
  return random() < 0.3 ? null : { at: between(random, 1, 12), when: oneOf(random, WAYS) }
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
      timer = setTimeout(() => worker.kill(signalOf()), afterMs)
    })
    worker.stderr?.setEncoding('utf8').on('data', (text: string) => (log += text))
    worker.on('close', (code, signal) => {
      clearTimeout(timer)
      const lastLine = out.trim().split('\n').at(-1) ?? ''
      const report = code === 0 ? (JSON.parse(lastLine) as Report) : null
      resolve({ killed: signal === 'SIGKILL' || code === CLOSED, report, log: `${log}(${signal ?? String(code)})` })
    })
  })
}
