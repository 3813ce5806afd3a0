// Two processes race for one thread, again and again: both open it and send messages at the same moment. One owns it and there is
// one log; the other follows and misses nothing; each message is answered once.
//   npm run race:sessions -- [--rounds 10000] [--at-once 8] [--store file|sqlite|postgres] [--url postgres://…] [--seed 1]
//     [--minutes 5]
// Ends early after `--minutes`.
import { fork } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { ThreadEvent } from 'thinharness/session'
import { openStore } from '../store.js'
import type { Store } from '../store.js'
import { actAsRacer } from './racer.js'
import { RacerProcess } from './racer-process.js'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '10000' },
    'at-once': { type: 'string', default: '8' },
    store: { type: 'string', default: 'file' },
    url: { type: 'string' },
    seed: { type: 'string', default: '1' },
    minutes: { type: 'string' },
    // Of a child process; the script passes it to itself.
    place: { type: 'string' },
  },
})
const rounds = Number(values.rounds)
const RACERS = ['a', 'b'] as const

const storeIn = (place: string): Promise<Store> => openStore(values.store, values.url ?? place, 'race_sessions')

if (values.place !== undefined) await actAsRacer(await storeIn(values.place))
else await race()

async function race(): Promise<void> {
  const place = await mkdtemp(join(tmpdir(), 'thinharness-race-'))
  const store = await storeIn(place)
  const args = Object.entries({ ...values, place }).flatMap(([option, value]) => [`--${option}`, value])
  const racers = RACERS.map(() => new RacerProcess(fork(fileURLToPath(import.meta.url), args)))
  const lanes = Number(values['at-once'])
  let problems = 0
  const endsAt = values.minutes === undefined ? Infinity : Date.now() + Number(values.minutes) * 60_000
  let next = 0
  const lane = async (): Promise<void> => {
    while (next < rounds && (next === 0 || Date.now() < endsAt)) {
      const threadId = `t_${values.seed}_${process.pid}_${next++}`
      for (const problem of await problemsOfRound(store, racers, threadId)) {
        problems += 1
        console.error(`${threadId}: ${problem}`)
      }
      if (next % 1_000 === 0) console.error(`${next} rounds, ${problems} problems`)
    }
  }
  try {
    await Promise.all(racers.map((racer) => racer.isReady))
    await Promise.all(Array.from({ length: lanes }, lane))
  } finally {
    await Promise.all(racers.map((racer) => racer.stop()))
    await store.close?.()
    await rm(place, { recursive: true, force: true, maxRetries: 10 })
  }
  console.log(`${next} rounds of two processes (${values.store}): ${problems} problems.`)
  process.exitCode = problems === 0 ? 0 : 1
}

async function problemsOfRound(
  store: Store,
  racers: readonly RacerProcess[],
  threadId: string,
): Promise<readonly string[]> {
  const messageIds = RACERS.map((name) => [`${name}1`, `${name}2`])
  const answers = racers.map((racer, index) =>
    racer.send({ threadId, own: messageIds[index] ?? [], all: messageIds.flat() }),
  )
  const failed = (await Promise.all(answers)).flatMap((answer) => answer.problems)
  const { stored, begun } = await storedIn(store, threadId)
  const reports = await Promise.all(racers.map((racer) => racer.finish({ threadId, stored })))
  if (failed.length > 0) return failed
  const problems = reports.flatMap((report) => report.problems)
  const owners = reports.filter(({ owner }) => owner === 'self')
  if (owners.length !== 1)
    problems.push(`${owners.length} processes own it: ${reports.map(({ owner }) => owner).join(' and ')}.`)
  for (const messageId of messageIds.flat()) {
    const times = begun.filter((each) => each === messageId).length
    if (times !== 1) problems.push(`${messageId} began ${times} runs.`)
  }
  for (const { seen } of reports) {
    // Each log in its order; an event of the run and one of the thread that are stored at the same moment have none.
    for (const log of new Set(stored.map(logOf))) {
      const [is, expected] = [seen, stored].map((ids) => ids.filter((id) => logOf(id) === log).join(' '))
      if (is !== expected) problems.push(`A reader got ${is} instead of ${expected}.`)
    }
  }
  const [first, second] = reports
  if (first?.snapshot !== second?.snapshot) problems.push('The processes show different snapshots.')
  return problems
}

function logOf(id: string): string {
  return id.slice(0, id.indexOf(':'))
}

/** Ids of the stored events, and the messages that began a run. */
async function storedIn(
  store: Store,
  threadId: string,
): Promise<{ readonly stored: readonly string[]; readonly begun: readonly string[] }> {
  const stored: string[] = []
  const begun: string[] = []
  for await (const event of store.read<ThreadEvent>({ kind: 'thread', id: threadId })) {
    stored.push(`thread:${event.seq}`)
    if (event.kind !== 'run_begun') continue
    begun.push(...event.messageIds)
    for await (const { runId, seq } of store.read({ kind: 'run', id: event.runId })) stored.push(`${runId}:${seq}`)
  }
  return { stored, begun }
}
