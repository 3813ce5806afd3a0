import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Harness } from 'thinharness'
import type { LogStore, RunSummary } from 'thinharness'
import { postgresLog } from 'thinharness/store/postgres'
import { Deliveries } from './deliveries.js'
import { drawn } from './live-list.js'
import { Workers } from './workers.js'

const TENANTS = ['acme', 'borealis', 'kestrel'] as const

export interface FleetOptions {
  readonly databaseUrl: string
  readonly jobs: number
  readonly workers: number
  /** Workers that are killed during the work, one after the other. */
  readonly kills: number
}

/** Queues jobs, lets workers do them, kills some of these, and compares what was delivered. True if each job was done once. */
export async function fleet({ databaseUrl, jobs, workers, kills }: FleetOptions): Promise<boolean> {
  await using log = postgresLog({ connectionString: databaseUrl, schema: 'fleet' })
  await using deliveries = await Deliveries.open(databaseUrl)
  const batch = randomUUID().slice(0, 8)
  await queueJobs(log, batch, jobs)
  console.log(`${jobs} jobs of ${TENANTS.length} customers wait, ${workers} workers start\n`)

  const running = new Workers(databaseUrl, workers)
  const show = drawn()
  let killed = 0
  for (;;) {
    const runs = await runsOf(log, batch)
    const done = runs.filter(({ status }) => status === 'completed' || status === 'failed').length
    show(TENANTS, runs)
    if (done === jobs) break
    // A kill when the first part of the work is done, one when the second is, and so on.
    if (killed < kills && done >= ((killed + 1) * jobs) / (kills + 1)) {
      killed += 1
      console.log(`kill -9 ${running.killOne()}: another one starts`)
    }
    running.check()
    await sleep(100)
  }
  await running.stop()
  const failed = (await runsOf(log, batch)).filter(({ status }) => status === 'failed')
  for (const { runId, error } of failed) console.log(`${runId} failed: ${error?.message ?? ''}`)
  return report(await deliveries.of(batch), { jobs, killed })
}

/** A job is a run that waits. Any process can queue it: a web server, a timer. It needs neither a model nor a worker. */
async function queueJobs(log: LogStore, batch: string, jobs: number): Promise<void> {
  const harness = new Harness({ log })
  for (let index = 0; index < jobs; index++) {
    const tenant = TENANTS[index % TENANTS.length] ?? ''
    const runId = `${batch}-${String(index + 1).padStart(3, '0')}`
    // `tenant` has a meaning: each customer gets a turn, however many jobs another one has.
    await harness.queue(`Deliver report ${runId} to ${tenant}.`, { runId, labels: { tenant, batch } })
  }
  await harness.close()
}

async function runsOf(log: LogStore, batch: string): Promise<readonly RunSummary[]> {
  const runs: RunSummary[] = []
  for await (const run of log.list({ kind: 'run', labels: { batch } })) runs.push(run)
  return runs
}

function report(
  delivered: ReadonlyMap<string, readonly string[]>,
  { jobs, killed }: { readonly jobs: number; readonly killed: number },
): boolean {
  for (const [worker, reports] of delivered) console.log(`${worker.padEnd(10)} delivered ${reports.length}`)
  const all = [...delivered.values()].flat()
  const isRight = all.length === jobs && new Set(all).size === jobs
  console.log(
    `${jobs} jobs, ${killed} workers killed, ${all.length} reports delivered: ${isRight ? 'each once' : 'NOT each once'}`,
  )
  return isRight
}
