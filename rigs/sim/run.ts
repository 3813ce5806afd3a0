// The simulation: lives of conversations in virtual time, each determined by its seed. Processes share a store that is late and
// fails, providers fail, processes die at any append, people answer late, twice or never; then every promise is checked.
//   npm run sim -- [--lives 2000] [--seed 1] [--lanes 2]
//   npm run sim -- --seed 17 --trace
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { live } from './life.js'
import type { LifeCounts } from './life.js'
import { preload } from './preload.js'

const { values } = parseArgs({
  options: {
    lives: { type: 'string', default: '2000' },
    /** Of the first life; the others follow. */
    seed: { type: 'string', default: '1' },
    lanes: { type: 'string', default: '2' },
    trace: { type: 'boolean', default: false },
    // Of a child process; the script passes it to itself.
    lane: { type: 'string' },
  },
})
const [lives, first, lanes] = [Number(values.lives), Number(values.seed), Number(values.lanes)]
/** One in so many lives is lived twice, and must be the same. */
const AGAIN = 50

/** The totals of a lane. */
type Totals = LifeCounts & { readonly lives: number; readonly problems: number }

if (values.trace) await showLife()
else if (values.lane !== undefined) await beLane(Number(values.lane))
else await play()

async function play(): Promise<void> {
  const all = await Promise.all(Array.from({ length: lanes }, (_, lane) => laneOf(lane)))
  const sum = (name: keyof Totals): number => all.reduce((total, each) => total + each[name], 0)
  const counts = `${sum('messages')} messages, ${sum('runs')} runs, ${sum('calls')} calls, ${sum('deaths')} deaths`
  console.log(`${sum('lives')} lives from seed ${first}: ${counts}, ${sum('problems')} problems.`)
  process.exitCode = sum('problems') === 0 && sum('lives') === lives ? 0 : 1
}

function laneOf(lane: number): Promise<Totals> {
  const worker = fork(fileURLToPath(import.meta.url), [...process.argv.slice(2), '--lane', String(lane)])
  return new Promise((resolve, reject) => {
    worker.on('message', (totals) => resolve(totals as Totals))
    worker.on('exit', (code) => reject(new Error(`Lane ${lane} ended with code ${code}.`)))
  })
}

/** Lives every life whose number is one of this lane. */
async function beLane(lane: number): Promise<void> {
  await preload()
  const totals = { lives: 0, messages: 0, runs: 0, calls: 0, deaths: 0, problems: 0 }
  for (let number = lane; number < lives; number += lanes) {
    const seed = first + number
    const { problems, counts, log } = await live(seed)
    const isSame = number % AGAIN !== 0 || (await live(seed)).log.join('\n') === log.join('\n')
    for (const problem of [...problems, ...(isSame ? [] : ['The same seed gave another life.'])]) {
      totals.problems += 1
      console.error(`seed ${seed}: ${problem}`)
    }
    totals.lives += 1
    for (const name of ['messages', 'runs', 'calls', 'deaths'] as const) totals[name] += counts[name]
    if (totals.lives % 10_000 === 0) console.error(`lane ${lane}: ${totals.lives} lives, ${totals.problems} problems`)
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
