import { memoryLog } from 'thinharness'
import type { Chat, ChatEvent } from 'thinharness/session'
import { between, randomOf } from '../crash/random.js'
import type { Random } from '../crash/random.js'
import { ACTS, weighted } from './actions.js'
import { checkLife } from './check.js'
import { People } from './people.js'
import { SimProcess } from './process.js'
import type { World } from './process.js'
import type { Trace } from './sim-log.js'
import { VirtualTime } from './virtual-time.js'
import { wireProblems } from './wires.js'

export interface LifeReport {
  readonly seed: number
  readonly problems: readonly string[]
  /** The stored events of all threads and runs, one JSON text each: the same for the same seed. */
  readonly log: () => readonly string[]
  readonly counts: LifeCounts
  /** The last run of each thread. */
  readonly lastRuns: readonly string[]
}

export interface LifeCounts {
  readonly messages: number
  readonly runs: number
  readonly calls: number
  readonly deaths: number
}

/** A reader of a conversation in one process, and the events that it got. */
export interface SimReader {
  readonly processNumber: number
  readonly threadId: string
  readonly after: string | undefined
  readonly events: ChatEvent[]
  /** The store failed. */
  hasFailed: boolean
}

export interface Life {
  readonly world: World
  readonly people: People
  readonly processes: SimProcess[]
  readonly readers: SimReader[]
  readonly threads: Set<string>
  readonly deleted: Set<string>
  /** Phases that must not have been seen. */
  readonly problems: string[]
}

/** Calls of a caller are waited for so long, in ms of virtual time. */
const PATIENCE_MS = 1_200_000

/** One life: what people, processes, stores and providers do is determined by its seed. */
export async function live(seed: number, trace: Trace = () => undefined): Promise<LifeReport> {
  const random = randomOf(seed)
  const posts = new Set<string>()
  const time = new VirtualTime(random, () => posts.size === 0)
  const life = newLife({ time, random, trace, posts })
  const uninstall = time.install()
  const report = await time
    .run(lifeOf(seed, life))
    .catch((error: unknown): LifeReport => {
      const problem = error instanceof Error ? (error.stack ?? error.message) : String(error)
      return {
        seed,
        problems: [problem],
        log: () => [],
        counts: { messages: 0, runs: 0, calls: 0, deaths: 0 },
        lastRuns: [],
      }
    })
    .finally(uninstall)
  const problems = [...report.problems]
  for (const runId of report.lastRuns) problems.push(...(await wireProblems(life.world.base, runId)))
  return { ...report, problems }
}

async function lifeOf(seed: number, life: Life): Promise<LifeReport> {
  const { time, random } = life.world
  spawn(life)
  const acting = new Set<Promise<unknown>>()
  for (let step = between(random, 3, 22); step > 0; step--) {
    const act = doStep(life).catch((error: unknown) => noteError(life, error))
    acting.add(act)
    void act.then(() => acting.delete(act))
    if (random() < 0.5) await Promise.race([act, time.sleep(PATIENCE_MS)])
    if (random() < 0.6) await time.sleep(pauseOf(random))
  }
  await Promise.race([Promise.all(acting), time.sleep(PATIENCE_MS)])
  return checkLife(seed, life)
}

function newLife({
  time,
  random,
  trace,
  posts,
}: Pick<World, 'random' | 'trace' | 'posts'> & { readonly time: VirtualTime }): Life {
  let calls = 0
  const hasTroubles = random() < 0.6
  const chance = (most: number): number => (hasTroubles && random() < 0.5 ? random() * most : 0)
  const troubles = { late: chance(0.5), fails: chance(0.06), losesAnswer: chance(0.03) }
  const world: World = {
    ...{ base: memoryLog(), trace, time, random, posts, troubles, providerFails: random() < 0.5 ? 0 : random() * 0.3 },
    effects: new Map(),
    hasResponder: random() < 0.15,
    nextCall: () => (calls += 1),
  }
  const people = new People(random, trace)
  people.areSilent = random() < 0.1
  return {
    ...{ world, people, processes: [], readers: [], threads: new Set(['t']), deleted: new Set() },
    problems: [],
  }
}

function pauseOf(random: Random): number {
  const [short, long] = [between(random, 1, 200), between(random, 1_000, 90_000)]
  return random() < 0.85 ? short : long
}

export function spawn(life: Life): SimProcess {
  const process = new SimProcess(life.world, `p${life.processes.length}`)
  life.processes.push(process)
  return process
}

const STEPS: readonly (readonly [number, (life: Life) => Promise<unknown>])[] = [
  [80, actOnThread],
  [4, (life) => Promise.resolve(alive(life).length < 3 && spawn(life))],
  [3, die],
  [5, dieInAppend],
  [2, (life) => anyProcess(life).close()],
  [6, read],
  [2, fork],
  [2, remove],
  [2, lookAround],
  [2, expire],
]

async function doStep(life: Life): Promise<unknown> {
  if (alive(life).length === 0) spawn(life)
  return weighted(life.world.random, STEPS)(life)
}

async function actOnThread(life: Life): Promise<unknown> {
  const { world, people } = life
  const process = anyProcess(life)
  const processNumber = life.processes.indexOf(process)
  const act = weighted(world.random, ACTS)
  const chat = await process.sessions.open(anyThread(life))
  world.trace(`${process.name} ${chat.threadId} ${chat.phase}: ${act.name}`)
  return act(chat, people, { random: world.random, processNumber, sleep: (ms) => world.time.sleep(ms) })
}

async function die(life: Life): Promise<void> {
  const { log } = anyProcess(life)
  log.die()
  await afterDeath(life, log)
}

/** The process dies at one of its next appends. */
async function dieInAppend(life: Life): Promise<void> {
  const { random } = life.world
  const { log } = anyProcess(life)
  log.dieAt(between(random, 1, 12), random() < 0.5)
  await log.died
  await afterDeath(life, log)
}

/** On the same machine, its claims are free at once; on another one, they expire. */
async function afterDeath({ world }: Life, log: SimProcess['log']): Promise<void> {
  if (world.random() < 0.6) await log.freeClaims()
}

async function read(life: Life): Promise<void> {
  const { random } = life.world
  const process = anyProcess(life)
  const threadId = anyThread(life)
  const chat = await process.sessions.open(threadId)
  const earlier = life.readers.find((reader) => reader.threadId === threadId)?.events ?? []
  const after = random() < 0.5 ? earlier[between(random, 0, earlier.length)]?.cursor : undefined
  const reader: SimReader = {
    processNumber: life.processes.indexOf(process),
    threadId,
    after,
    events: [],
    hasFailed: false,
  }
  life.readers.push(reader)
  void readAll(life, chat, reader)
}

async function readAll(life: Life, chat: Chat, reader: SimReader): Promise<void> {
  const { after, events } = reader
  try {
    for await (const event of chat.events({ after })) {
      events.push(event)
      const problem = phaseProblem(chat)
      if (problem !== null) life.problems.push(`${problem}, after ${event.kind}.`)
    }
  } catch {
    reader.hasFailed = true
  }
}

/** A phase and the pending items must fit. */
export function phaseProblem(chat: Chat): string | null {
  const { phase, pending } = chat
  if (phase === 'waiting' && pending.length === 0) return 'The phase is `waiting`, and nothing waits'
  if (phase === 'idle' && pending.length > 0) return `The phase is \`idle\`, and ${pending.length} items wait`
  return null
}

async function fork(life: Life): Promise<void> {
  const { random } = life.world
  const { sessions } = anyProcess(life)
  const from = anyThread(life)
  const entries = await sessions.messages(from)
  const entry = random() < 0.7 ? entries[between(random, 0, Math.max(0, entries.length - 1))] : undefined
  const threadId = `f${life.threads.size}`
  life.threads.add(threadId)
  await sessions.fork(from, { threadId, ...(entry !== undefined && { after: entry.id }) })
}

async function remove(life: Life): Promise<void> {
  const forks = [...life.threads].filter((threadId) => threadId !== 't')
  const threadId = forks[between(life.world.random, 0, forks.length - 1)]
  if (threadId === undefined) return
  life.deleted.add(threadId)
  await anyProcess(life).sessions.delete(threadId)
}

async function lookAround(life: Life): Promise<void> {
  const { sessions } = anyProcess(life)
  for await (const { threadId } of sessions.list({ limit: 2 })) if (threadId === 't') await sessions.messages(threadId)
  for await (const { item } of sessions.inbox()) if (item.callId === '') throw new Error('An item without an id.')
}

/** Whoever has not answered for a while is answered for. */
async function expire(life: Life): Promise<void> {
  const { world, people } = life
  if (people.areSilent) return
  await anyProcess(life).sessions.expire({
    afterMs: between(world.random, 0, 120_000),
    answer: ({ item }) => (world.random() < 0.3 ? null : people.answerTo(item)),
  })
}

function alive({ processes }: Life): readonly SimProcess[] {
  return processes.filter(({ log, isClosed }) => !log.isDead && !isClosed)
}

function anyProcess(life: Life): SimProcess {
  const processes = alive(life)
  return processes[between(life.world.random, 0, processes.length - 1)] ?? spawn(life)
}

function anyThread({ world, threads }: Life): string {
  const list = [...threads]
  return world.random() < 0.8 ? 't' : (list[between(world.random, 0, list.length - 1)] ?? 't')
}

/** Errors that a caller may get. Anything else is a mistake of the library. */
function noteError(life: Life, error: unknown): void {
  const name = error instanceof Error ? error.name : ''
  if (name === 'SessionError' || name === 'HarnessError' || name === 'AbortError') return
  life.problems.push(`A call rejected with ${error instanceof Error ? (error.stack ?? '') : String(error)}`)
}
