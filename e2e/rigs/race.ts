// Many processes race to take over one run, again and again: one wins, the log is intact, and no other process appends.
//   node .build/rigs/race.js [--processes 64] [--rounds 500] [--store file|sqlite|postgres] [--url postgres://…]
//     [--minutes 5]
// Ends early after `--minutes`.
import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { HarnessError } from 'thinharness'
import type { DurableEvent } from 'thinharness'
import { openStore } from './store.js'
import type { Store } from './store.js'

/** The result of a racer in one round. */
interface RacerResult {
  readonly won: boolean
  readonly owner: string
  /** Codes of the rejected appends. */
  readonly rejected: readonly string[]
}

const EVENTS_BEFORE = 3
const EVENTS_BY_WINNER = 5
const TTL_MS = 60_000

const { values } = parseArgs({
  options: {
    processes: { type: 'string', default: '64' },
    rounds: { type: 'string', default: '500' },
    store: { type: 'string', default: 'file' },
    url: { type: 'string' },
    minutes: { type: 'string' },
    // Of a child process; the script passes these to itself.
    part: { type: 'string' },
    place: { type: 'string' },
    name: { type: 'string' },
  },
})
const rounds = Number(values.rounds)
const name = values.name ?? `${process.pid}_${Date.now()}`

if (values.part === 'victim') await actAsVictim()
else if (values.part === 'racer') await actAsRacer()
else await race()

function storeIn(folder = ''): Promise<Store> {
  return openStore(values.store, values.url ?? folder, 'thinharness_race')
}

function eventOf(runId: string, seq: number, by: string): DurableEvent {
  const base = { runId, seq, at: new Date().toISOString(), durable: true, hookEvent: 'race', message: by } as const
  return { kind: 'hook_failed', ...base, parentRunId: null, parentToolCallId: null, agentName: null }
}

function runIdOf(round: number): string {
  return `run_${name}_${round}`
}

/** Claims every run for a moment, begins it, and dies. */
async function actAsVictim(): Promise<void> {
  const store = await storeIn(values.place)
  for (let round = 0; round < rounds; round++) {
    const runId = runIdOf(round)
    if (!(await store.claim({ kind: 'run', id: runId }, 'victim', 1))) throw new Error(`Run ${runId} is not free.`)
    for (let seq = 1; seq <= EVENTS_BEFORE; seq++)
      await store.append({ kind: 'run', id: runId }, [eventOf(runId, seq, 'victim')], { owner: 'victim' })
  }
  process.kill(process.pid, 'SIGKILL')
}

/** Tries to take over the run of each round, and to append to it. */
async function actAsRacer(): Promise<void> {
  const store = await storeIn(values.place)
  process.on('disconnect', () => process.exit())
  process.on('message', (round: number) => {
    raceOnce(store, round).then(
      (result) => process.send?.(result),
      (error: unknown) => process.send?.({ won: false, owner: '', rejected: [String(error)] }),
    )
  })
  process.send?.('ready')
}

async function raceOnce(store: Store, round: number): Promise<RacerResult> {
  const runId = runIdOf(round)
  const owner = `racer_${process.pid}`
  const won = await store.claim({ kind: 'run', id: runId }, owner, TTL_MS)
  const rejected: string[] = []
  for (let count = 1; count <= EVENTS_BY_WINNER; count++) {
    const event = eventOf(runId, EVENTS_BEFORE + count, owner)
    await store.append({ kind: 'run', id: runId }, [event], { owner }).catch((error: unknown) => {
      rejected.push(error instanceof HarnessError ? error.code : String(error))
    })
  }
  return { won, owner, rejected }
}

async function race(): Promise<void> {
  const place = await mkdtemp(join(tmpdir(), 'thinharness-race-'))
  const args = Object.entries({ ...values, place, name }).flatMap(([option, value]) => [`--${option}`, value])
  const start = (part: string): ChildProcess => fork(fileURLToPath(import.meta.url), [...args, '--part', part])
  const [, signal] = (await once(start('victim'), 'exit')) as [number | null, string | null]
  if (signal !== 'SIGKILL') throw new Error('The runs to take over could not be created.')
  const racers = Array.from({ length: Number(values.processes) }, () => start('racer'))
  try {
    await Promise.all(racers.map(messageFrom))
    const store = await storeIn(place)
    const endsAt = values.minutes === undefined ? Infinity : Date.now() + Number(values.minutes) * 60_000
    let round = 0
    for (; round < rounds && (round === 0 || Date.now() < endsAt); round++) await raceRound(store, racers, round)
    await store.close?.()
    console.log(
      `${round} rounds of ${racers.length} processes (${values.store}): one won each, and every log is intact.`,
    )
  } finally {
    await Promise.all(racers.map(stop))
    await rm(place, { recursive: true, maxRetries: 10 })
  }
}

/** The next message of a racer. Rejects if it ends instead. */
function messageFrom(racer: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const onExit = (): void => reject(new Error('A racer has ended too early.'))
    if (racer.exitCode !== null || racer.signalCode !== null) onExit()
    racer.once('exit', onExit)
    racer.once('message', (message) => {
      racer.off('exit', onExit)
      resolve(message)
    })
  })
}

async function stop(racer: ChildProcess): Promise<void> {
  if (racer.exitCode !== null || racer.signalCode !== null) return
  const exited = once(racer, 'exit')
  if (racer.connected) racer.disconnect()
  await exited
}

async function raceRound(store: Store, racers: readonly ChildProcess[], round: number): Promise<void> {
  const answers = racers.map(messageFrom)
  for (const racer of racers) racer.send(round)
  const results = (await Promise.all(answers)) as readonly RacerResult[]
  const winners = results.filter(({ won }) => won)
  const wrong = results.filter(({ won, rejected }) =>
    won ? rejected.length > 0 : rejected.length !== EVENTS_BY_WINNER || rejected.some((code) => code !== 'run_owned'),
  )
  const winner = winners[0]?.owner ?? 'nobody'
  const expected = Array.from({ length: EVENTS_BEFORE + EVENTS_BY_WINNER }, (_, index) => {
    return `${index + 1} by ${index < EVENTS_BEFORE ? 'victim' : winner}`
  })
  const found: string[] = []
  for await (const event of store.read({ kind: 'run', id: runIdOf(round) }))
    found.push(`${event.seq} by ${event.kind === 'hook_failed' ? event.message : event.kind}`)
  if (winners.length === 1 && wrong.length === 0 && found.join() === expected.join()) return
  throw new Error(
    `Round ${round}: ${winners.length} winners, wrong answers ${JSON.stringify(wrong)}, the log has ${found.join(', ')}.`,
  )
}
