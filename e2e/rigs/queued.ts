// Runs wait in a log; processes begin them and are killed (SIGKILL) while they do; others go on. Then each run was begun once, and each has
// ended.
//   node .build/rigs/queued.js [--runs 2000] [--processes 6] [--store file|sqlite|postgres] [--url postgres://…] [--seed 1] [--minutes 5]
// Ends early after `--minutes`.
import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Harness, HarnessError } from 'thinharness'
import type { LogRef } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { between, randomOf } from './crash/random.js'
import { openStore } from './store.js'
import type { Store } from './store.js'

/** What a process tells its parent: it is loaded, it is about to claim a run, a run has ended. */
type Told = { readonly ready: true } | { readonly runId: string; readonly owner: string } | { readonly ended: string }

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '2000' },
    processes: { type: 'string', default: '6' },
    store: { type: 'string', default: 'file' },
    url: { type: 'string' },
    seed: { type: 'string', default: '1' },
    minutes: { type: 'string' },
    // Of a child process; the script passes these to itself.
    worker: { type: 'string' },
    place: { type: 'string' },
  },
})
/** The most runs that end between two kills. */
const MOST_BETWEEN_KILLS = 24

function storeIn(folder = ''): Promise<Store> {
  return openStore(values.store, values.url ?? folder, `queued_${values.seed}`)
}

function run(id: string): LogRef<'run'> {
  return { kind: 'run', id }
}

function tell(told: Told): Promise<void> {
  return new Promise((resolve) => process.send?.(told, () => resolve()))
}

/** Begins and continues runs that wait, until none does. */
async function work(number: number): Promise<void> {
  const store = await storeIn(values.place)
  const random = randomOf(number)
  const claim = store.claim.bind(store)
  Object.assign(store, {
    // Its parent has to know what a process owned that it kills.
    claim: async (ref: LogRef, owner: string, ttlMs: number) => {
      if (ttlMs > 0) await tell({ runId: ref.id, owner })
      return claim(ref, owner, ttlMs)
    },
  })
  const model = new ScriptedModel().always(async () => {
    await sleep(between(random, 0, 8))
    return 'Done.'
  })
  const harness = new Harness({ model, builtinTools: [], log: store })
  process.on('disconnect', () => process.exit())
  process.on('message', () => void begin())
  await tell({ ready: true })
  const begin = async (): Promise<void> => {
    for (;;) {
      const waiting = await store.waiting({ limit: 12 })
      const { runId } = waiting[between(random, 0, waiting.length - 1)] ?? {}
      if (runId === undefined) await sleep(20)
      else await harness.recover(runId).then(() => tell({ ended: runId }), ofAnother)
    }
  }
}

/** Another process was faster. */
function ofAnother(error: unknown): void {
  if (!(error instanceof HarnessError) || error.code !== 'run_owned') throw error
}

async function play(): Promise<void> {
  const place = await mkdtemp(join(tmpdir(), 'thinharness-queued-'))
  const store = await storeIn(place)
  const random = randomOf(Number(values.seed))
  const endsAt = values.minutes === undefined ? Infinity : Date.now() + Number(values.minutes) * 60_000
  const count = Number(values.runs)
  const host = new Harness({ log: store })
  const ids = Array.from({ length: count }, (_, index) => `run_${index}`)
  for (const id of ids) await host.queue(`Job ${id}.`, { runId: id, labels: { tenant: `t_${id.length}` } })
  const workers = new Workers(store, place)
  try {
    await workers.start(Number(values.processes))
    let [kills, next] = [0, between(random, 1, MOST_BETWEEN_KILLS)]
    while (workers.ended.size < count && Date.now() < endsAt) {
      await workers.progress()
      if (workers.ended.size < next) continue
      await workers.kill(between(random, 0, Number(values.processes) - 1), between(random, 0, 6))
      kills += 1
      next = workers.ended.size + between(random, 1, MOST_BETWEEN_KILLS)
    }
    await workers.stop()
    const problems = await problemsOf(store, ids, workers.ended.size >= count)
    for (const problem of problems) console.error(problem)
    console.log(`${workers.ended.size} runs, ${kills} kills (${values.store}): ${problems.length} problems.`)
    process.exitCode = problems.length === 0 ? 0 : 1
  } finally {
    await workers.stop()
    await store.close?.()
    await rm(place, { recursive: true, maxRetries: 10 })
  }
}

/** The processes that are at work, and one that waits for its turn. */
class Workers {
  readonly ended = new Set<string>()
  readonly #store: Store
  readonly #place: string
  readonly #at: ChildProcess[] = []
  readonly #owned = new Map<ChildProcess, { readonly runId: string; readonly owner: string }[]>()
  #next: Promise<ChildProcess> | null = null
  #count = 0
  #wake = (): void => undefined
  #failure: Error | null = null
  #isOver = false

  constructor(store: Store, place: string) {
    this.#store = store
    this.#place = place
  }

  async start(processes: number): Promise<void> {
    const loaded = await Promise.all(Array.from({ length: processes }, () => this.#load()))
    this.#at.push(...loaded)
    this.#next = this.#load()
    for (const worker of loaded) worker.send('begin')
  }

  /** Resolves when a run has ended, or after a while. */
  async progress(): Promise<void> {
    await Promise.race([new Promise<void>((resolve) => (this.#wake = resolve)), sleep(1000, undefined, { ref: false })])
    if (this.#failure !== null) throw this.#failure
  }

  /** Kills one of them after so many ms: what it owned is free then, as it would be after the time of its claim. */
  async kill(index: number, afterMs: number): Promise<void> {
    await sleep(afterMs)
    const worker = this.#at[index]
    if (worker === undefined) return
    const exited = once(worker, 'exit')
    worker.kill('SIGKILL')
    const [, signal] = (await exited) as [number | null, string | null]
    if (signal !== 'SIGKILL') throw new Error(`A process ended by itself: ${String(signal ?? worker.exitCode)}.`)
    for (const { runId, owner } of this.#owned.get(worker) ?? []) {
      await this.#store.claim(run(runId), owner, 0)
      // It may have had no time to tell.
      if ((await this.#store.inspect(run(runId)))?.status === 'completed') this.ended.add(runId)
    }
    const next = await this.#next
    if (next === null) return
    this.#at[index] = next
    this.#next = this.#load()
    next.send('begin')
  }

  async stop(): Promise<void> {
    this.#isOver = true
    const next = await this.#next
    this.#next = null
    const all = [...this.#at.splice(0), ...(next === null ? [] : [next])]
    await Promise.all(
      all.map(async (worker) => {
        if (worker.exitCode !== null || worker.signalCode !== null) return
        const exited = once(worker, 'exit')
        worker.disconnect()
        await exited
      }),
    )
  }

  #load(): Promise<ChildProcess> {
    this.#count += 1
    const number = String(Number(values.seed) * 10_000 + this.#count)
    const args = [...process.argv.slice(2), '--place', this.#place, '--worker', number]
    const worker = fork(fileURLToPath(import.meta.url), args, { execArgv: ['--no-warnings'] })
    return new Promise((resolve, reject) => {
      worker.once('exit', (code, signal) => {
        const failure = new Error(`A process ended with code ${code}.`)
        reject(failure)
        if (signal !== 'SIGKILL' && !this.#isOver) this.#failure = failure
        this.#wake()
      })
      worker.on('message', (message) => {
        const told = message as Told
        if ('ready' in told) resolve(worker)
        else if ('ended' in told) {
          this.ended.add(told.ended)
          this.#owned.delete(worker)
          this.#wake()
        } else this.#owned.set(worker, [...(this.#owned.get(worker) ?? []), told])
      })
    })
  }
}

/** Each run was begun at most once; and has ended, and in one way, if `isDone`. */
async function problemsOf(store: Store, ids: readonly string[], isDone: boolean): Promise<readonly string[]> {
  const problems: string[] = []
  for (const id of ids) {
    const counts: Record<string, number> = {}
    for await (const event of store.read(run(id))) {
      const name = event.kind === 'run_started' ? `${event.kind} ${event.begun}` : event.kind
      counts[name] = (counts[name] ?? 0) + 1
    }
    const { status } = (await store.inspect(run(id))) ?? {}
    const begun = counts['run_started fresh'] ?? 0
    const isRight = counts['run_queued'] === 1 && begun <= 1 && (counts['run_completed'] ?? 0) <= 1
    if (!isRight || (isDone && (begun !== 1 || status !== 'completed')))
      problems.push(`Run ${id} is ${status}: ${JSON.stringify(counts)}`)
  }
  return problems
}

if (values.worker === undefined) await play()
else await work(Number(values.worker))
