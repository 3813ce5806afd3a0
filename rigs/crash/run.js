// The kill rig: generated runs in processes that are killed, with SIGKILL, before and after every append to the log and at
// random moments; others go on with them, and may be killed too. What was done to the world is counted outside.
//   npm run crash -- [--store file|sqlite|postgres|dbos] [--url postgres://…] [--kills 2000] [--seed 1] [--lanes 2]
import { fork } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { problemsOf } from './check.js'
import { Counter } from './counter.js'
import { between, randomOf } from './random.js'

/** A process that says nothing for so long hangs. */
const PATIENCE_MS = 60_000
/** How often one run is killed, at most; then it may come to its end. */
const KILLS_A_RUN = 4

const { values } = parseArgs({
  options: {
    store: { type: 'string', default: 'file' },
    url: { type: 'string' },
    kills: { type: 'string', default: '2000' },
    seed: { type: 'string', default: '1' },
    lanes: { type: 'string', default: '2' },
    package: { type: 'string', default: fileURLToPath(new URL('../../dist', import.meta.url)) },
  },
})
const wanted = Number(values.kills)
const random = randomOf(Number(values.seed))
const folder = await mkdtemp(join(tmpdir(), 'thinharness-crash-'))
const database = isFolder(values.store) ? null : placeOfDatabase()
const totals = { kills: 0, runs: 0, unknown: 0, problems: [] }

try {
  const rounds = roundsWithoutEnd()
  await Promise.all(Array.from({ length: Number(values.lanes) }, () => lane(rounds)))
} finally {
  await rm(folder, { recursive: true, force: true })
}
report()

function isFolder(store) {
  return store !== 'postgres' && store !== 'dbos'
}

function placeOfDatabase() {
  if (values.url !== undefined) return values.url
  throw new Error(`With \`--store ${values.store}\` the rig needs \`--url postgres://…\`.`)
}

async function lane(rounds) {
  for await (const round of rounds) await play(round)
}

/** Scenario after scenario: for each, a round for every append of its undisturbed run, before and after it. */
async function* roundsWithoutEnd() {
  for (let number = 1; totals.kills < wanted; number++) {
    const seed = between(random, 1, 2 ** 31)
    const reference = await undisturbed(seed, `run_${values.seed}_${number}_reference`)
    const rounds = Array.from({ length: reference.appends }, (_, index) =>
      ['before', 'after'].map((when) => ({ at: index + 1, when })),
    )
    for (const [index, first] of shuffled(rounds.flat()).entries()) {
      if (totals.kills >= wanted) return
      yield { seed, reference, first: random() < 0.25 ? null : first, runId: `run_${values.seed}_${number}_${index}` }
    }
  }
}

async function undisturbed(seed, runId) {
  const counterPath = join(folder, `${runId}.effects`)
  const { said, log } = await inProcess({ seed, runId, counterPath })
  if (said === null) throw new Error(`The undisturbed run of seed ${seed} failed:\n${log}`)
  const problems = problemsOf({ said, effects: new Counter(counterPath).read(), reference: said })
  if (problems.length > 0) throw new Error(`The undisturbed run of seed ${seed} is wrong:\n${problems.join('\n')}`)
  return said
}

/** A run is killed where `first` says, then at a few more places, and comes to its end. */
async function play({ seed, reference, first, runId }) {
  const counterPath = join(folder, `${runId}.effects`)
  const kills = [first, ...Array.from({ length: between(random, 0, KILLS_A_RUN - 1) }, () => laterKill())]
  let ended = null
  for (const kill of [...kills, undefined]) {
    const afterMs = kill === null ? between(random, 0, 150) : undefined
    ended = await inProcess({ seed, runId, counterPath, kill: kill ?? undefined, afterMs })
    if (ended.killed) countKill()
    if (!ended.killed) break
  }
  totals.runs += 1
  const told =
    ended.said === null ? [`It came to no end:\n${ended.log}`] : problemsIn(ended.said, counterPath, reference)
  for (const problem of told) {
    const whole = `seed ${seed}, ${runId}, kills ${JSON.stringify(kills)}: ${problem}`
    totals.problems.push(whole)
    console.error(whole)
  }
}

/** Now and then says how far it is: the long form takes a quarter of an hour. */
function countKill() {
  totals.kills += 1
  if (totals.kills % 100 === 0) console.error(`${totals.kills} kills, ${totals.problems.length} problems`)
}

function problemsIn(said, counterPath, reference) {
  totals.unknown += said.runs
    .flatMap(({ calls }) => calls)
    .filter(({ errorType }) => errorType === 'UnknownOutcome').length
  return problemsOf({ said, effects: new Counter(counterPath).read(), reference })
}

/** At one of the next appends, or at a random moment. */
function laterKill() {
  return random() < 0.3 ? null : { at: between(random, 1, 12), when: random() < 0.5 ? 'before' : 'after' }
}

/** One process, until it has ended or was killed; `said` is its last word when it came to its end. */
function inProcess({ afterMs, ...part }) {
  // Folders are the run's own: at its end those below it are looked for among all that are there.
  const place = database ?? join(folder, part.runId)
  const job = { packageFolder: values.package, store: values.store, place, ...part }
  const worker = fork(fileURLToPath(new URL('worker.js', import.meta.url)), [JSON.stringify(job)], { silent: true })
  return new Promise((resolve) => {
    let out = ''
    let log = ''
    let timer = setTimeout(() => worker.kill('SIGTERM'), PATIENCE_MS)
    worker.stdout.setEncoding('utf8').on('data', (text) => {
      out += text
      if (afterMs === undefined || !out.includes('"ready"')) return
      clearTimeout(timer)
      timer = setTimeout(() => worker.kill('SIGKILL'), afterMs)
    })
    worker.stderr.setEncoding('utf8').on('data', (text) => (log += text))
    worker.on('close', (code, signal) => {
      clearTimeout(timer)
      const last = out.trim().split('\n').at(-1)
      const said = code === 0 ? JSON.parse(last) : null
      resolve({ killed: signal === 'SIGKILL', said, log: `${log}(${signal ?? code})` })
    })
  })
}

function shuffled(list) {
  return list
    .map((each) => ({ each, place: random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ each }) => each)
}

function report() {
  const { kills, runs, unknown, problems } = totals
  console.log(
    `${values.store}, seed ${values.seed}: ${kills} kills in ${runs} runs, ${unknown} calls reported as unknown, ${problems.length} problems.`,
  )
  process.exitCode = problems.length === 0 && kills >= wanted ? 0 : 1
}
