// The simulation: lives of conversations in virtual time, each determined by its seed. Processes share a store that is late and
// fails, providers fail, processes die at any append, people answer late, twice or never; then every promise is checked.
//   npm run sim -- [--lives 2000] [--seed 1] [--lanes 2] [--minutes 60]
//   npm run sim -- --seed 17 --trace
// The long form prints its totals every minute. It ends after `--minutes`, or early on SIGINT or SIGTERM, and reports what it did.
import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { live } from './life.js'
import { preload } from './preload.js'
import { added, NOTHING, shown } from './totals.js'
import type { Totals } from './totals.js'

const { values } = parseArgs({
  options: {
    lives: { type: 'string', default: '2000' },
    /** Of the first life; the others follow. */
    seed: { type: 'string', default: '1' },
    lanes: { type: 'string', default: '2' },
    /** Null: until all lives are lived. */
    minutes: { type: 'string' },
    trace: { type: 'boolean', default: false },
    // Of a child process; the script passes it to itself: the number of its first life.
    from: { type: 'string' },
  },
})
const [lives, first, lanes] = [Number(values.lives), Number(values.seed), Number(values.lanes)]
/** One in so many lives is lived twice, and must be the same. */
const AGAIN = 50
/** With more lives than this, totals are printed while they are lived. */
const SHORT_FORM = 5_000
const MINUTE_MS = 60_000
/** How often a child process tells its totals, in ms. */
const TELL_MS = 5_000
/** What a process that died in a life was waiting for stays in the memory, 4 KB a life: a child process lives so many. */
const LIVES_OF_A_PROCESS = 25_000
/** Most errors of a life are expected, and nobody reads where they come from; little of a life outlives it. */
const PROCESS_ARGS = ['--no-warnings', '--stack-trace-limit=0', '--max-semi-space-size=32']

if (values.trace) await showLife()
else if (values.from !== undefined) await beLane(Number(values.from))
else await play()

async function play(): Promise<void> {
  const began = Date.now()
  const parts: Totals[] = []
  const workers = new Set<ChildProcess>()
  const end = { isOver: false, isInterrupted: false }
  const stop = (): void => {
    end.isOver = true
    for (const worker of workers) if (worker.connected) worker.send('stop')
  }
  const interrupt = (): void => {
    end.isInterrupted = true
    stop()
  }
  process.on('SIGINT', interrupt).on('SIGTERM', interrupt)
  const sum = (): Totals => parts.reduce(added, NOTHING)
  const report = (): void => console.error(`${((Date.now() - began) / MINUTE_MS).toFixed(1)} min: ${shown(sum())}`)
  const timers = [
    ...(lives > SHORT_FORM ? [setInterval(report, MINUTE_MS)] : []),
    ...(values.minutes === undefined ? [] : [setTimeout(stop, Number(values.minutes) * MINUTE_MS)]),
  ]
  const playLane = async (lane: number): Promise<void> => {
    for (let from = lane; from < lives && !end.isOver; from += LIVES_OF_A_PROCESS * lanes) {
      const args = [...process.argv.slice(2), '--from', String(from)]
      const worker = fork(fileURLToPath(import.meta.url), args, { execArgv: PROCESS_ARGS })
      workers.add(worker)
      const part = parts.push(NOTHING) - 1
      await ended(worker, (totals) => (parts[part] = totals))
      workers.delete(worker)
    }
  }
  await Promise.all(Array.from({ length: lanes }, (_, lane) => playLane(lane)))
  timers.forEach(clearTimeout)
  const totals = sum()
  console.log(`From seed ${first}: ${shown(totals)}.`)
  if (end.isInterrupted) console.error(`Stopped early: ${lives} lives were asked for.`)
  process.exitCode = totals.problems === 0 && !end.isInterrupted ? 0 : 1
}

/** Resolves when a child process has ended; it tells its totals now and then, and at its end. */
function ended(worker: ChildProcess, onTotals: (totals: Totals) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    worker.on('message', (totals) => onTotals(totals as Totals))
    worker.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`A lane ended with code ${code}.`))))
  })
}

/** Lives the lives of one lane, from a number on. */
async function beLane(from: number): Promise<void> {
  const end = { isOver: false }
  process.on('message', () => (end.isOver = true))
  await preload()
  let totals = NOTHING
  let toldMs = Date.now()
  const until = Math.min(lives, from + LIVES_OF_A_PROCESS * lanes)
  for (let number = from; number < until && !end.isOver; number += lanes) {
    const seed = first + number
    const isTwice = number % AGAIN === 0
    const { problems, counts, log } = await live(seed)
    const isSame = !isTwice || (await live(seed)).log().join('\n') === log().join('\n')
    const all = [...problems, ...(isSame ? [] : ['The same seed gave another life.'])]
    for (const problem of all) console.error(`seed ${seed}: ${problem}`)
    totals = added(totals, { ...counts, lives: 1, replayed: isTwice ? 1 : 0, problems: all.length })
    if (Date.now() < toldMs + TELL_MS) continue
    toldMs = Date.now()
    process.send?.(totals)
    await new Promise((resolve) => setImmediate(resolve))
  }
  process.send?.(totals, () => process.exit())
}

async function showLife(): Promise<void> {
  await preload()
  const began = new Date(2030, 0, 1).getTime()
  const { problems } = await live(first, (line) => {
    const text = typeof line === 'string' ? line : line()
    console.log(`${((Date.now() - began) / 1000).toFixed(3)} ${text}`)
  })
  for (const problem of problems) console.log(problem)
}
