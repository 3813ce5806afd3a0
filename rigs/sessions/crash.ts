// The kill rig of sessions: processes act on a thread (send, steer, interrupt, cancel, answer, switch mode and model, fork) and are
// killed (SIGKILL) at random moments; others continue it. Then each message is in the transcript once, in the queue or back with
// its sender, no refused call has run, no effect happened twice, and every wire accepts the history.
//   npm run crash:sessions -- [--kills 2000] [--store file|sqlite|postgres] [--url postgres://…] [--seed 1]
import { fork } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Counter } from '../crash/counter.js'
import { between, randomOf } from '../crash/random.js'
import { placesOf, problemsOfCalls, problemsOfMessages, settled } from '../sim/check.js'
import { SimProcess } from '../sim/process.js'
import { wireProblems } from '../sim/wires.js'
import { openStore } from '../store.js'
import { actUntilKilled, worldOf } from './killed.js'
import type { KilledJob } from './killed.js'
import { Ledger } from './ledger.js'

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '2000' },
    store: { type: 'string', default: 'file' },
    url: { type: 'string' },
    seed: { type: 'string', default: '1' },
    // Of a child process; the script passes it to itself.
    job: { type: 'string' },
  },
})
/** The most kills of one thread. */
const KILLS_A_THREAD = 12

if (values.job === undefined) await play()
else await actUntilKilled(JSON.parse(values.job) as KilledJob)

async function play(): Promise<void> {
  const random = randomOf(Number(values.seed))
  const totals = { kills: 0, threads: 0, messages: 0, problems: 0 }
  while (totals.kills < Number(values.kills)) {
    const folder = await mkdtemp(join(tmpdir(), 'thinharness-sessions-'))
    const schema = `crash_${values.seed}_${totals.threads}`
    const place = values.url ?? folder
    const kills = Math.min(between(random, 1, KILLS_A_THREAD), Number(values.kills) - totals.kills)
    try {
      for (let number = 0; number < kills; number++) {
        const job = { store: values.store, place, schema, folder, number, seed: between(random, 1, 2 ** 31) }
        await killed(job, between(random, 0, 900))
      }
      const { messages, problems } = await check({
        ...{ store: values.store, place, schema, folder },
        number: kills,
        seed: 1,
      })
      for (const problem of problems) console.error(`thread ${totals.threads} of seed ${values.seed}: ${problem}`)
      totals.messages += messages
      totals.problems += problems.length
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
    totals.kills += kills
    totals.threads += 1
    if (totals.threads % 20 === 0) console.error(`${totals.kills} kills, ${totals.problems} problems`)
  }
  const { kills, threads, messages, problems } = totals
  console.log(
    `${values.store}, seed ${values.seed}: ${kills} kills, ${threads} threads, ${messages} messages, ${problems} problems.`,
  )
  process.exitCode = problems === 0 ? 0 : 1
}

/** A process acts on the thread, and is killed some time after it has begun. */
async function killed(job: KilledJob, afterMs: number): Promise<void> {
  const worker = fork(fileURLToPath(import.meta.url), ['--job', JSON.stringify(job)])
  await new Promise<void>((resolve, reject) => {
    worker.once('message', () => void sleep(afterMs).then(() => worker.kill('SIGKILL')))
    worker.once('exit', (code, signal) =>
      signal === 'SIGKILL' ? resolve() : reject(new Error(`A process ended with code ${code}.`)),
    )
  })
}

/** Continues the threads to their ends, and finds the promises that were broken. */
async function check(job: KilledJob): Promise<{ readonly messages: number; readonly problems: readonly string[] }> {
  const base = await openStore(job.store, job.place, job.schema)
  const people = new Ledger(join(job.folder, 'people'), randomOf(1))
  const world = worldOf(job, base, new Counter(join(job.folder, 'effects')))
  const last = new SimProcess(world, 'last')
  last.calm()
  const problems = [...people.problems]
  const runIds: string[] = []
  for (const threadId of people.threads) {
    const chat = await settled(last, threadId, problems, [100, 1_000])
    runIds.push(...(chat?.snapshot.runs.slice(-1).map(({ runId }) => runId) ?? []))
  }
  await last.sessions.close()
  const known = { people, deleted: new Set<string>() }
  problems.push(...problemsOfMessages(known, await placesOf(base, [...people.threads])))
  problems.push(...(await problemsOfCalls({ world, ...known })))
  for (const runId of runIds) for (const wire of [0, 1, 2]) problems.push(...(await wireProblems(base, runId, wire)))
  await base.close?.()
  return { messages: people.messages.size, problems: [...new Set(problems)] }
}
