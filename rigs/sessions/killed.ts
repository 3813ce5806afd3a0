import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Counter } from '../crash/counter.js'
import { between, randomOf } from '../crash/random.js'
import { ACTS, weighted } from '../sim/actions.js'
import { SimProcess } from '../sim/process.js'
import type { World } from '../sim/process.js'
import { openStore } from '../store.js'
import type { Store } from '../store.js'
import { Ledger } from './ledger.js'

/** One process that acts on a thread until it is killed. */
export interface KilledJob {
  readonly store: string
  readonly place: string
  readonly schema: string
  /** Of everything outside the store: what people know, and the effects of tools. */
  readonly folder: string
  readonly number: number
  readonly seed: number
}

/** Models and tools of the simulation in real time, which passes faster. */
const TIMES_FASTER = 20
const CALLS_A_PROCESS = 100_000

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

/** Never resolves. */
export async function actUntilKilled(job: KilledJob): Promise<void> {
  const base = await openStore(job.store, job.place, job.schema)
  const world = worldOf(job, base, new Counter(join(job.folder, 'effects')))
  const { random } = world
  const people = new Ledger(join(job.folder, 'people'), random)
  const { sessions } = new SimProcess(world, `p${job.number}`)
  const act = async (): Promise<void> => {
    const threads = [...people.threads]
    const threadId = threads[between(random, 0, threads.length - 1)] ?? 't'
    if (random() < 0.03) {
      const forkId = `f${job.number}_${threads.length}`
      people.addThread(forkId)
      await sessions.fork(threadId, { threadId: forkId })
      return
    }
    const chat = await sessions.open(threadId)
    await weighted(random, ACTS)(chat, people, { random, processNumber: job.number, sleep: world.time.sleep })
  }
  process.send?.('ready')
  for (;;) {
    const acting = act()
      .catch((error: unknown) => noteError(people, error))
      .then(() => people.save())
    await Promise.race([acting, sleep(between(random, 1, 100))])
    if (random() < 0.5) await sleep(between(random, 1, 40))
  }
}

/** Errors that a caller may get. Anything else is a mistake of the library. */
function noteError(people: Ledger, error: unknown): void {
  const name = error instanceof Error ? error.name : ''
  if (['SessionError', 'HarnessError', 'AbortError'].includes(name)) return
  people.problems.push(`A call rejected with ${error instanceof Error ? (error.stack ?? '') : String(error)}`)
}
