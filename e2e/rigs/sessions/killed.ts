import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Counter } from '../crash/counter.js'
import { between, randomOf } from '../crash/random.js'
import { ACTS, weighted } from '../sim/actions.js'
import { SimProcess } from '../sim/process.js'
import type { World } from '../sim/process.js'
import { openStore } from '../store.js'
import type { Store } from '../store.js'
import { Ledger, rootThread } from './ledger.js'

/** One process that acts on sessions until it is killed. */
export interface KilledJob {
  readonly store: string
  readonly place: string
  readonly schema: string
  /** Of everything outside the store: what people know, and the effects of tools. */
  readonly folder: string
  readonly number: number
  readonly seed: number
  /** How many sessions it acts on, forks not counted. */
  readonly sessions: number
  /** It is killed at one of its appends, before or after that is stored; null: from outside. */
  readonly dieAt: readonly [appends: number, storesLast: boolean] | null
}

/** Models and tools of the simulation in real time, which passes faster. */
const TIMES_FASTER = 20
const CALLS_A_PROCESS = 100_000
/** At most so many threads for each session, forks included. */
const MOST_THREADS = 2

/** Effects that are counted in a file. */
class CountedEffects extends Map<string, number> {
  readonly #counter: Counter | null

  constructor(counter: Counter) {
    super()
    this.#counter = null
    for (const { key } of counter.read()) this.set(key, (this.get(key) ?? 0) + 1)
    this.#counter = counter
  }

  override set(key: string, times: number): this {
    this.#counter?.add({ toolName: '', key })
    return super.set(key, times)
  }
}

export function worldOf({ number, seed }: KilledJob, base: Store, counter: Counter): World {
  let calls = number * CALLS_A_PROCESS
  return {
    ...{ base, random: randomOf(seed), trace: () => undefined, providerFails: 0.05 },
    troubles: { late: 0, fails: 0, losesAnswer: 0 },
    posts: new Set(),
    time: { sleep: (ms) => sleep(Math.ceil(ms / TIMES_FASTER)), wake: () => undefined },
    effects: new CountedEffects(counter),
    hasResponder: false,
    nextCall: () => (calls += 1),
  }
}

/** Acts on all sessions at once. Never resolves: the process is killed from outside, or at one of its appends. */
export async function actUntilKilled(job: KilledJob): Promise<void> {
  const base = await openStore(job.store, job.place, job.schema)
  const world = worldOf(job, base, new Counter(join(job.folder, 'effects')))
  const people = new Ledger(join(job.folder, 'people'), world.random, job.sessions)
  const killed = new SimProcess(world, `p${job.number}`)
  if (job.dieAt !== null) killed.log.dieAt(...job.dieAt)
  void killed.log.died.then(() => process.kill(process.pid, 'SIGKILL'))
  const life: KilledLife = { job, world, people, sessions: killed.sessions }
  process.send?.('acts')
  await Promise.all(Array.from({ length: job.sessions }, (_, number) => actOn(life, rootThread(number))))
}

interface KilledLife {
  readonly job: KilledJob
  readonly world: World
  readonly people: Ledger
  readonly sessions: SimProcess['sessions']
}

/** Acts mostly on one thread, again and again. */
async function actOn(life: KilledLife, own: string): Promise<never> {
  const { people } = life
  const { random } = life.world
  for (;;) {
    const threads = [...people.threads]
    const other = threads[between(random, 0, threads.length - 1)]
    const acting = act(life, random() < 0.7 ? own : (other ?? own))
      .catch((error: unknown) => noteError(people, error))
      .then(() => people.save())
    await Promise.race([acting, sleep(between(random, 1, 100))])
    if (random() < 0.5) await sleep(between(random, 1, 40))
  }
}

async function act({ job, world, people, sessions }: KilledLife, threadId: string): Promise<void> {
  const { random } = world
  if (random() < 0.03 && people.threads.size < MOST_THREADS * job.sessions) {
    const entries = await sessions.messages(threadId)
    const entry = random() < 0.7 ? entries[between(random, 0, Math.max(0, entries.length - 1))] : undefined
    const forkId = `f${job.number}_${people.threads.size}`
    people.addThread(forkId)
    await sessions.fork(threadId, { threadId: forkId, ...(entry !== undefined && { after: entry.id }) })
    return
  }
  const chat = await sessions.open(threadId)
  people.noteOpened(threadId)
  await weighted(random, ACTS)(chat, people, { random, processNumber: job.number, sleep: world.time.sleep })
}

/** Errors that a caller may get. Anything else is a mistake of the library. */
function noteError(people: Ledger, error: unknown): void {
  const name = error instanceof Error ? error.name : ''
  if (['SessionError', 'HarnessError', 'AbortError'].includes(name)) return
  people.problems.push(`A call rejected with ${error instanceof Error ? (error.stack ?? '') : String(error)}`)
}
