// The kill rig of sessions: processes act on threads (send, steer, interrupt, cancel, answer, switch mode and model, fork) and are
// killed (SIGKILL) at random moments, or before or after one of their appends; others continue. Then each message is in the
// transcript once, in the queue or back with its sender, no refused call has run, no effect happened twice, and every wire accepts
// every history.
//   npm run crash:sessions -- [--kills 2000] [--store file|sqlite|postgres] [--url postgres://…] [--seed 1] [--sessions 4] [--lanes 1]
//     [--minutes 60]
// The long form prints its totals every minute. It ends early after `--minutes`, or on SIGINT or SIGTERM, and reports what it did.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Counter } from '../crash/counter.js'
import { between, randomOf } from '../crash/random.js'
import { placesOf, problemsOfCalls, problemsOfMessages, problemsOfTranscript, settled } from '../sim/check.js'
import { SimProcess } from '../sim/process.js'
import { wireProblems } from '../sim/wires.js'
import { openStore } from '../store.js'
import { actUntilKilled, worldOf } from './killed.js'
import type { KilledJob } from './killed.js'
import { Ledger } from './ledger.js'
import { WarmProcesses } from './warm-processes.js'

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '2000' },
    store: { type: 'string', default: 'file' },
    url: { type: 'string' },
    seed: { type: 'string', default: '1' },
    /** On which a process acts at once. */
    sessions: { type: 'string', default: '4' },
    lanes: { type: 'string', default: '1' },
    minutes: { type: 'string' },
    // Of a child process; the script passes it to itself.
    worker: { type: 'boolean', default: false },
  },
})
/** The most kills of one set of threads. */
const KILLS_A_ROUND = 8
/** The most appends until a process is killed at one, and the longest time until it is killed in ms: for each of its sessions. */
const MOST_APPENDS = 10
const LONGEST_MS = 150
const MINUTE_MS = 60_000
/** With more kills than this, totals are printed in between. */
const SHORT_FORM = 100

if (values.worker) {
  process.on('disconnect', () => process.exit())
  process.on('message', (job) => void actUntilKilled(job as KilledJob))
  // Its parent may have ended while it started.
  process.send?.('ready', () => undefined)
} else await play()

async function play(): Promise<void> {
  const began = Date.now()
  const totals = { asked: 0, kills: 0, sessions: 0, threads: 0, messages: 0, histories: 0, problems: 0, isOver: false }
  const shown = (): string =>
    `${totals.kills} kills of processes, ${totals.sessions} of sessions, ${totals.threads} threads, ${totals.messages} messages, ${totals.histories} histories, ${totals.problems} problems`
  const stop = (): void => void (totals.isOver = true)
  process.on('SIGINT', stop).on('SIGTERM', stop)
  const report = (): void => console.error(`${((Date.now() - began) / MINUTE_MS).toFixed(1)} min: ${shown()}`)
  const timers = [
    ...(Number(values.kills) > SHORT_FORM ? [setInterval(report, MINUTE_MS)] : []),
    ...(values.minutes === undefined ? [] : [setTimeout(stop, Number(values.minutes) * MINUTE_MS)]),
  ]
  const lane = async (number: number): Promise<void> => {
    const random = randomOf(Number(values.seed) + number * 1_000_003)
    const processes = new WarmProcesses(fileURLToPath(import.meta.url))
    for (let round = 0; totals.asked < Number(values.kills) && !totals.isOver; round++) {
      const kills = Math.min(between(random, 1, KILLS_A_ROUND), Number(values.kills) - totals.asked)
      totals.asked += kills
      const name = `${values.seed}_${number}_${round}`
      const found = await playRound({ name, kills, random, processes })
      for (const problem of found.problems) console.error(`round ${name}: ${problem}`)
      totals.kills += kills
      totals.sessions += found.openings
      totals.threads += found.threads
      totals.messages += found.messages
      totals.histories += found.histories
      totals.problems += found.problems.length
    }
    processes.close()
  }
  await Promise.all(Array.from({ length: Number(values.lanes) }, (_, number) => lane(number)))
  timers.forEach(clearTimeout)
  console.log(`${values.store}, seed ${values.seed}: ${shown()}.`)
  process.exitCode = totals.problems === 0 ? 0 : 1
}

interface Round {
  readonly name: string
  readonly kills: number
  readonly random: () => number
  readonly processes: WarmProcesses
}

interface Found {
  readonly threads: number
  readonly messages: number
  readonly histories: number
  /** Sessions that were open in a process when it was killed. */
  readonly openings: number
  readonly problems: readonly string[]
}

/** A set of threads: process after process acts on them and is killed; at the end they are checked. */
async function playRound({ name, kills, random, processes }: Round): Promise<Found> {
  const folder = await mkdtemp(join(tmpdir(), 'thinharness-sessions-'))
  const base = { store: values.store, place: values.url ?? folder, schema: `crash_${name}`, folder }
  const sessions = Number(values.sessions)
  const jobOf = (number: number): KilledJob => {
    const dieAt = random() < 0.6 ? ([between(random, 1, MOST_APPENDS * sessions), random() < 0.5] as const) : null
    return { ...base, number, seed: between(random, 1, 2 ** 31), sessions, dieAt }
  }
  try {
    for (let number = 0; number < kills; number++)
      await processes.kill(jobOf(number), between(random, 0, LONGEST_MS * sessions))
    return await check({ ...jobOf(kills), dieAt: null })
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 10 })
  }
}

/** Continues the threads to their ends, and finds the promises that were broken. */
async function check(job: KilledJob): Promise<Found> {
  const base = await openStore(job.store, job.place, job.schema)
  const people = new Ledger(join(job.folder, 'people'), randomOf(1), job.sessions)
  const world = worldOf(job, base, new Counter(join(job.folder, 'effects')))
  const last = new SimProcess(world, 'last')
  last.calm()
  const problems = [...people.problems]
  const runIds: string[] = []
  const settle = async (threadId: string): Promise<void> => {
    const chat = await settled(last, threadId, problems, [100, 500])
    if (chat !== null) problems.push(...problemsOfTranscript(chat))
    runIds.push(...(chat?.snapshot.runs ?? []).map(({ runId }) => runId))
  }
  await Promise.all([...people.threads].map(settle))
  await last.sessions.close()
  const known = { people, deleted: new Set<string>() }
  problems.push(...problemsOfMessages(known, await placesOf(base, [...people.threads])))
  problems.push(...(await problemsOfCalls({ world, ...known })))
  for (const runId of runIds) problems.push(...(await wireProblems(base, runId)))
  await base.close?.()
  return {
    ...{ threads: people.threads.size, messages: people.messages.size, histories: runIds.length },
    ...{ openings: people.openings, problems: [...new Set(problems)] },
  }
}
