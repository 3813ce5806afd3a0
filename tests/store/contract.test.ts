import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { fileLog, memoryLog } from 'thinharness'
import type { LogEvent, LogStore, RunLog } from 'thinharness'
import { sqliteLog } from 'thinharness/store/sqlite'
import { runLogContract } from 'thinharness/testing'
import { temporaryFolder } from '../support/folder.js'

const folder = temporaryFolder()
let count = 0
const fresh = (): string => join(folder, `log_${(count += 1)}`)

describe('a log in memory', () => {
  for (const { name, says, check } of runLogContract({ open: () => memoryLog() }))
    test(`160 the contract of a log holds: ${name}, ${says}`, check)
})

describe('a log in a folder', () => {
  const places = new WeakMap<LogStore, string>()
  const open = (place = fresh()): LogStore => {
    const log = fileLog(place, { fsync: 'never' })
    places.set(log, place)
    return log
  }
  const laws = runLogContract({ open: () => open(), reopen: (log) => open(places.get(log)) })
  for (const { name, says, check } of laws) test(`160 the contract of a log holds: ${name}, ${says}`, check, 60_000)
})

describe('a log in SQLite', () => {
  const places = new WeakMap<LogStore, string>()
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
  for (const { name, says, check } of laws) test(`160 the contract of a log holds: ${name}, ${says}`, check, 60_000)
})

describe('the contract', () => {
  const broken = (change: (log: LogStore) => Partial<LogStore>): (() => LogStore) => {
    return () => {
      const log = memoryLog()
      const changes = change(log)
      return new Proxy(log, {
        get(target, name) {
          const member: unknown = Reflect.get(name in changes ? changes : target, name)
          return typeof member === 'function' ? (member.bind(target) as unknown) : member
        },
      })
    }
  }
  const checked = (open: () => LogStore, law: string): Promise<void> =>
    runLogContract({ open })
      .find(({ name }) => name === law)!
      .check()

  test.each<[string, string, (log: LogStore) => Partial<LogStore>]>([
    [
      'forgets an event',
      'keeps_in_order',
      (log) => ({ append: (ref, events) => log.append(ref, events.slice(0, -1)) }),
    ],
    ['takes gaps', 'refuses_gaps', () => gapTaker()],
    [
      'mixes runs and threads',
      'separates_kinds',
      (log) => ({ append: ({ id }, events) => log.append({ kind: 'run', id }, events) }),
    ],
    ['knows no owner', 'one_owner', (log) => ({ append: (ref, events) => log.append(ref, events) })],
    ['grants every claim', 'one_of_many', () => ({ claim: () => Promise.resolve(true) })],
    ['never lets a claim lapse', 'lapses', (log) => ({ claim: (ref, owner) => log.claim(ref, owner, 60_000) })],
    ['delivers a post to anybody', 'gives_posts_to_the_owner', () => ({ takePosts: () => Promise.resolve([]) })],
    ['forgets posts', 'delivers_posts_once', () => ({ post: () => Promise.resolve() })],
    [
      'drops posts with their owner',
      'keeps_posts_of_lost_owners',
      (log) => ({ takePosts: async (ref, owner) => (owner === 'bob' ? [] : log.takePosts(ref, owner)) }),
    ],
    ['ignores `after` when it is followed', 'follows', (log) => ({ follow: (ref) => log.read(ref) })],
    [
      'calls all runs running',
      'tells_how_runs_stand',
      (log) => ({
        inspect: async (ref) => {
          const summary = await log.inspect(ref)
          return summary === null ? null : { ...summary, status: 'running' }
        },
      }),
    ],
    [
      'knows only digests',
      'computes_missing_digests',
      (log) => {
        const known = new Set<string>()
        return {
          append: (ref, events, options) => {
            if (options?.digest !== undefined) known.add(ref.id)
            return log.append(ref, events, options)
          },
          inspect: async (ref) => (known.has(ref.id) ? log.inspect(ref) : null),
        }
      },
    ],
    ['lists nothing', 'lists_newest_first', () => ({ list: async function* () {} })],
    ['removes nothing', 'prunes_what_has_ended', () => ({ prune: () => Promise.resolve(0) })],
    [
      'knows no references',
      'keeps_what_is_referred_to',
      (log) => ({
        append: (ref, events, { owner, digest } = {}) => log.append(ref, events, { owner, digest }),
      }),
    ],
  ])(
    'sees a log that %s',
    async (_name, law, change) => {
      await expect(checked(broken(change), law)).rejects.toThrow(`The law \`${law}\` is broken.`)
    },
    20_000,
  )

  test('names the abilities that a log without `claim` lacks', async () => {
    const log = memoryLog()
    const bare: RunLog = { append: log.append.bind(log), read: log.read.bind(log) }
    const [law] = runLogContract({ open: () => bare }).filter(({ name }) => name === 'one_owner')
    await expect(law!.check()).rejects.toThrow('The log has no `claim`: leave this law out by `without`.')
    expect(() => runLogContract({ open: () => memoryLog(), without: ['one_ownr' as never] })).toThrow(/`one_ownr`/)
  })
})

/** Stores any events. */
function gapTaker(): Partial<LogStore> {
  const stored: LogEvent[] = []
  return {
    append: async (_ref, events) => void stored.push(...events),
    read: async function* <Event extends LogEvent>() {
      yield* stored as Event[]
    },
  }
}
