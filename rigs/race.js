// Many processes race to take over one run, again and again: one wins, the log is whole, and nobody else gets into it.
//   node rigs/race.js [--processes 64] [--rounds 500] [--store file|sqlite|postgres] [--url postgres://…] [--package <folder>]
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const EVENTS_BEFORE = 3
const EVENTS_BY_WINNER = 5
const TTL_MS = 60_000

const { values } = parseArgs({
  options: {
    processes: { type: 'string', default: '64' },
    rounds: { type: 'string', default: '500' },
    store: { type: 'string', default: 'file' },
    url: { type: 'string' },
    package: { type: 'string', default: fileURLToPath(new URL('../dist', import.meta.url)) },
    // A child's part; the script gives these to itself.
    part: { type: 'string' },
    place: { type: 'string' },
    name: { type: 'string' },
  },
})
const rounds = Number(values.rounds)

if (values.part === 'victim') await beVictim()
else if (values.part === 'racer') await beRacer()
else await race()

async function openStore() {
  const from = (path) => import(join(values.package, path))
  if (values.store === 'sqlite') return (await from('store/sqlite.js')).sqliteLog(join(values.place, 'runs.db'))
  if (values.store === 'postgres') {
    return (await from('store/postgres.js')).postgresLog({ connectionString: values.url, schema: 'thinharness_race' })
  }
  return (await from('index.js')).fileLog(values.place, { fsync: 'never' })
}

function eventOf(runId, seq, by) {
  const base = { runId, seq, at: new Date().toISOString(), durable: true, hookEvent: 'race', message: by }
  return { kind: 'hook_failed', ...base, parentRunId: null, parentToolCallId: null, agentName: null }
}

function runIdOf(round) {
  return `run_${values.name}_${round}`
}

/** Claims every run for a moment, begins it, and dies. */
async function beVictim() {
  const store = await openStore()
  for (let round = 0; round < rounds; round++) {
    const runId = runIdOf(round)
    if (!(await store.claim({ kind: 'run', id: runId }, 'victim', 1))) throw new Error(`Run ${runId} is not free.`)
    for (let seq = 1; seq <= EVENTS_BEFORE; seq++)
      await store.append({ kind: 'run', id: runId }, [eventOf(runId, seq, 'victim')], { owner: 'victim' })
  }
  process.kill(process.pid, 'SIGKILL')
}

/** Tries to take over the run of each round, and to write on. */
async function beRacer() {
  const store = await openStore()
  process.on('disconnect', () => process.exit())
  process.on('message', (round) => {
    raceOnce(store, round).then(
      (result) => process.send(result),
      (error) => process.send({ won: false, refused: [`${error}`] }),
    )
  })
  process.send('ready')
}

async function raceOnce(store, round) {
  const [runId, owner] = [runIdOf(round), `racer_${process.pid}`]
  const won = await store.claim({ kind: 'run', id: runId }, owner, TTL_MS)
  const refused = []
  for (let count = 1; count <= EVENTS_BY_WINNER; count++) {
    const event = eventOf(runId, EVENTS_BEFORE + count, owner)
    await store.append({ kind: 'run', id: runId }, [event], { owner }).catch((error) => refused.push(error.code))
  }
  return { won, owner, refused }
}

async function race() {
  const place = await mkdtemp(join(tmpdir(), 'thinharness-race-'))
  const given = Object.entries({ ...values, place, name: `${process.pid}_${Date.now()}` })
  const args = given.flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, value]))
  const start = (part) => fork(fileURLToPath(import.meta.url), [...args, '--part', part])
  const [, signal] = await once(start('victim'), 'exit')
  if (signal !== 'SIGKILL') throw new Error('The runs to be taken over could not be made.')
  const racers = Array.from({ length: Number(values.processes) }, () => start('racer'))
  try {
    await Promise.all(racers.map(answerOf))
    Object.assign(values, Object.fromEntries(given))
    const store = await openStore()
    for (let round = 0; round < rounds; round++) await raceRound(store, racers, round)
    await store.close?.()
    console.log(
      `${rounds} rounds of ${racers.length} processes (${values.store}): one won each, and every log is whole.`,
    )
  } finally {
    await Promise.all(racers.map(endOf))
    await rm(place, { recursive: true })
  }
}

/** What a racer says next. Rejects when it ends instead. */
function answerOf(racer) {
  return new Promise((resolve, reject) => {
    const ended = () => reject(new Error('A racer has ended before its time.'))
    if (racer.exitCode !== null || racer.signalCode !== null) ended()
    racer.once('exit', ended)
    racer.once('message', (message) => {
      racer.off('exit', ended)
      resolve(message)
    })
  })
}

async function endOf(racer) {
  if (racer.exitCode !== null || racer.signalCode !== null) return
  const ended = once(racer, 'exit')
  if (racer.connected) racer.disconnect()
  await ended
}

async function raceRound(store, racers, round) {
  const answers = racers.map(answerOf)
  for (const racer of racers) racer.send(round)
  const results = await Promise.all(answers)
  const winners = results.filter(({ won }) => won)
  const wrong = results.filter(({ won, refused }) =>
    won ? refused.length > 0 : refused.length !== EVENTS_BY_WINNER || refused.some((code) => code !== 'run_owned'),
  )
  const expected = Array.from({ length: EVENTS_BEFORE + EVENTS_BY_WINNER }, (_, index) => {
    return `${index + 1} by ${index < EVENTS_BEFORE ? 'victim' : winners[0]?.owner}`
  })
  const found = []
  for await (const { seq, message } of store.read({ kind: 'run', id: runIdOf(round) }))
    found.push(`${seq} by ${message}`)
  if (winners.length === 1 && wrong.length === 0 && found.join() === expected.join()) return
  throw new Error(
    `Round ${round}: ${winners.length} winners, wrong answers ${JSON.stringify(wrong)}, the log holds ${found.join(', ')}.`,
  )
}
