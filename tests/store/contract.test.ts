import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { fileLog, memoryLog } from 'thinharness'
import type { DurableEvent, RunLog, RunStore } from 'thinharness'
import { sqliteLog } from 'thinharness/store/sqlite'
import { runLogContract } from 'thinharness/testing'

const folder = mkdtempSync(join(tmpdir(), 'thinharness-contract-'))
let count = 0
const fresh = (): string => join(folder, `log_${(count += 1)}`)

afterAll(() => rmSync(folder, { recursive: true }))

describe('a log in memory', () => {
  for (const { name, says, check } of runLogContract({ open: () => memoryLog() })) test(`160 ${name}: ${says}`, check)
})

describe('a log in a folder', () => {
  const places = new WeakMap<RunStore, string>()
  const open = (place = fresh()): RunStore => {
    const log = fileLog(place, { fsync: 'never' })
    places.set(log, place)
    return log
  }
  const laws = runLogContract({ open: () => open(), reopen: (log) => open(places.get(log)) })
  for (const { name, says, check } of laws) test(`160 ${name}: ${says}`, check, 30_000)
})

describe('a log in SQLite', () => {
  const places = new WeakMap<RunStore, string>()
  const open = (place = `${fresh()}.db`): ReturnType<typeof sqliteLog> => {
    const log = sqliteLog(place)
    places.set(log, place)
    return log
  }
  const laws = runLogContract({
    open: () => open(),
    reopen: (log) => open(places.get(log)),
    kill: (log) => log.close(),
    close: (log) => log.close(),
  })
  for (const { name, says, check } of laws) test(`160 ${name}: ${says}`, check, 30_000)
})

describe('the contract', () => {
  const broken = (change: (log: RunStore) => Partial<RunLog>): (() => RunStore) => {
    return () => {
      const log = memoryLog()
      const own: RunStore = {
        append: log.append.bind(log),
        read: log.read.bind(log),
        claim: log.claim.bind(log),
        inspect: log.inspect.bind(log),
        list: log.list.bind(log),
        prune: log.prune.bind(log),
      }
      return { ...own, ...change(log) }
    }
  }
  const checked = (open: () => RunStore, law: string): Promise<void> =>
    runLogContract({ open })
      .find(({ name }) => name === law)!
      .check()

  test.each<[string, string, (log: RunStore) => Partial<RunStore>]>([
    ['forgets an event', 'keeps_in_order', (log) => ({ append: (id, events) => log.append(id, events.slice(0, -1)) })],
    ['takes gaps', 'refuses_gaps', () => gapTaker()],
    ['knows no owner', 'one_owner', (log) => ({ append: (id, events) => log.append(id, events) })],
    ['grants every claim', 'one_of_many', () => ({ claim: () => Promise.resolve(true) })],
    ['never lets a claim lapse', 'lapses', (log) => ({ claim: (id, owner) => log.claim(id, owner, 60_000) })],
    [
      'calls all runs running',
      'tells_how_runs_stand',
      (log) => ({ inspect: async (id) => withRunning(await log.inspect(id)) }),
    ],
    ['lists nothing', 'lists_newest_first', () => ({ list: async function* () {} })],
    ['removes nothing', 'prunes_what_has_ended', () => ({ prune: () => Promise.resolve(0) })],
  ])(
    'sees a log that %s',
    async (_name, law, change) => {
      await expect(checked(broken(change), law)).rejects.toThrow(`The law \`${law}\` is broken.`)
    },
    20_000,
  )

  test('says what a log without `claim` has to leave out', async () => {
    const log = memoryLog()
    const bare: RunLog = { append: log.append.bind(log), read: log.read.bind(log) }
    const [law] = runLogContract({ open: () => bare }).filter(({ name }) => name === 'one_owner')
    await expect(law!.check()).rejects.toThrow('The log has no `claim`: leave this law out by `without`.')
    expect(() => runLogContract({ open: () => memoryLog(), without: ['one_ownr' as never] })).toThrow(/`one_ownr`/)
  })
})

function withRunning<T>(summary: T): T {
  return summary === null ? summary : { ...summary, status: 'running' }
}

/** Keeps whatever it is given. */
function gapTaker(): Partial<RunLog> {
  const kept: DurableEvent[] = []
  return {
    append: async (_runId, events) => void kept.push(...events),
    read: async function* () {
      yield* kept
    },
  }
}
