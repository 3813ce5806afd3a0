import { execFileSync } from 'node:child_process'
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { fileLog } from 'thinharness'
import type { LogStore, RunSummary } from 'thinharness'
import type { ListOptions } from '#core/log/list-options.js'
import { Events, queuedStory } from '#testing/log-contract/story.js'
import { rounds, timeLimit } from '../support/length.js'
import { temporaryFolder } from '../support/folder.js'

const fresh = (): string => join(temporaryFolder(), 'runs')
const open = (folder: string): LogStore => fileLog(folder, { fsync: 'never' })

/** So many runs that have ended, one that is queued, one that was left and one that is paused. */
async function filled(folder: string, ended: number): Promise<void> {
  const log = open(folder)
  const stories = Array.from({ length: ended + 2 }, (_, index) => {
    const labels = { agent: `agent_${index % 3}` }
    return new Events(`run_${1000 + index}`, { afterMs: index * 1000, labels })
  })
  for (const story of stories.slice(0, ended)) story.completes()
  stories[ended]?.pauses()
  const queued = queuedStory('run_q', { afterMs: 5, labels: { tenant: 'a' } })
  for (const { ref, made, digest } of [...stories, queued]) await log.append(ref, made, { digest })
}

/** Everything that a store lists. */
async function lists(log: LogStore): Promise<unknown> {
  const ids = async (options: ListOptions<'run'>): Promise<unknown> =>
    (await collected(log.list(options))).map(({ runId, status, lastSeq }) => [runId, status, lastSeq])
  return [
    (await collected(log.list())).map((summary) => ({ ...summary, cursor: '' })),
    await ids({ status: 'interrupted' }),
    await ids({ status: ['paused', 'failed'], parentRunId: null }),
    await ids({ labels: { agent: 'agent_1' } }),
    (await log.waiting()).map(({ runId }) => runId),
    new Set((await collected(log.list({ changedAfter: null }))).map(({ runId, lastSeq }) => `${runId} ${lastSeq}`)),
  ]
}

async function collected(summaries: AsyncIterable<RunSummary>): Promise<RunSummary[]> {
  const all: RunSummary[] = []
  for await (const summary of summaries) all.push(summary)
  return all
}

/** Other bytes in the first and the last logs of runs, of which their files show nothing: all kinds of runs are among them. */
function scramble(folder: string): void {
  const names = readdirSync(folder).filter((each) => each.endsWith('.jsonl'))
  for (const name of [...names.slice(0, 5), ...names.slice(-8)]) {
    const path = join(folder, name)
    execFileSync('touch', ['-r', path, `${folder}.time`])
    writeFileSync(path, 'x'.repeat(statSync(path).size), { flag: 'r+' })
    execFileSync('touch', ['-r', `${folder}.time`, path])
  }
}

describe('the index of a log in files', () => {
  test('a list of runs that were listed before, or that ended since, reads none of their logs', async () => {
    const folder = fresh()
    await filled(folder, 100)
    const before = await lists(open(folder))
    expect(existsSync(join(folder, '.index'))).toBe(true)
    scramble(folder)
    expect(await lists(open(folder))).toEqual(before)
    const story = new Events('run_new', { afterMs: 900_000 })
    story.completes()
    await open(folder).append(story.ref, story.made, { digest: story.digest })
    scramble(folder)
    const [newest] = await collected(open(folder).list())
    expect(newest).toMatchObject({ runId: 'run_new', status: 'completed' })
  })

  test('a follower of many idle logs reads none of them', async () => {
    const folder = fresh()
    await filled(folder, 200)
    const log = open(folder)
    const [last] = (await collected(log.list({ changedAfter: null }))).slice(-1)
    scramble(folder)
    expect(await collected(open(folder).list({ changedAfter: last?.cursor ?? '' }))).toEqual([])
  })

  test('a few logs have no index unless somebody follows their changes', async () => {
    const folder = fresh()
    await filled(folder, 5)
    await collected(open(folder).list())
    expect(readdirSync(folder).filter((name) => !name.endsWith('.jsonl'))).toEqual([])
  })

  test('nothing of a run that is removed stays in it', async () => {
    const folder = fresh()
    await filled(folder, 100)
    const log = open(folder)
    await lists(log)
    expect(readFileSync(join(folder, '.index'), 'utf8')).toContain('run_1007')
    await log.prune({ only: [{ kind: 'run', id: 'run_1007' }] })
    expect(readFileSync(join(folder, '.index'), 'utf8')).not.toContain('run_1007')
    expect(readFileSync(join(folder, '.index'), 'utf8')).toContain('run_1008')
  })

  test('lists are the same in a folder where it cannot be written', async () => {
    const folder = fresh()
    mkdirSync(join(folder, '.index', 'taken'), { recursive: true })
    await filled(folder, 100)
    const other = fresh()
    await filled(other, 100)
    const log = open(folder)
    expect(await lists(log)).toEqual(await lists(open(other)))
    expect(await lists(log)).toEqual(await lists(open(other)))
    const [last] = (await collected(log.list({ changedAfter: null }))).slice(-1)
    expect(await collected(log.list({ changedAfter: last?.cursor ?? '' }))).toEqual([])
  })

  test('a follower goes on after the index was emptied', async () => {
    const folder = fresh()
    await filled(folder, 2)
    const log = open(folder)
    const follow = async (after: string | null): Promise<string> =>
      (await collected(log.list({ changedAfter: after }))).at(-1)?.cursor ?? ''
    const first = await follow(null)
    truncateSync(join(folder, '.index'), 0)
    const second = await follow(first)
    expect(await collected(log.list({ changedAfter: second }))).toEqual([])
  })

  test.each(['x', '1', '.1', 'zz.1', '-1', '0.0x'])('a cursor that is none is rejected (%s)', async (changedAfter) => {
    const folder = fresh()
    await filled(folder, 1)
    await expect(collected(open(folder).list({ changedAfter }))).rejects.toMatchObject({ code: 'invalid_options' })
  })

  test('a follower misses nothing when an older copy of the index comes back and its places are given away again', async () => {
    const append = (run: number): Step => ({ does: 'append', run })
    const follow: Step = { does: 'follow', log: 0 }
    const toSecond: Step[] = [append(0), follow, { does: 'keep', at: 0 }, append(0), append(1), follow, append(0)]
    const life: Step[] = [...toSecond, { does: 'restore', at: 0 }, append(3), { does: 'prune', run: 0 }]
    for (let time = 0; time < 20; time += 1) await tryLife(life)
  })

  test(
    'an index that is missing, torn, damaged or old is never wrong, and whoever follows changes misses none',
    async () => {
      await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), tryLife), rounds(25, 800))
    },
    timeLimit(60_000),
  )
})

const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ does: fc.constant('append' as const), run: fc.nat(7) }) },
  {
    weight: 2,
    arbitrary: fc.record({ does: fc.constantFrom('list', 'follow', 'follow', 'reopen' as const), log: fc.nat(1) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      does: fc.constantFrom('remove', 'cut', 'damage', 'keep', 'keep', 'restore', 'overwrite' as const),
      at: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('prune' as const), run: fc.nat(7) }) },
)

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

/** A life of a folder with two processes and a follower. */
async function tryLife(steps: readonly Step[]): Promise<void> {
  const folder = fresh()
  const index = join(folder, '.index')
  const kept = `${folder}.kept`
  const stories = new Map<number, Events>()
  const logs = [open(folder), open(folder)]
  const seen = new Map<string, number>()
  let created = 0
  let cursor: string | null = null
  const follow = async (log: LogStore): Promise<void> => {
    for await (const summary of log.list({ changedAfter: cursor })) {
      seen.set(summary.runId, summary.lastSeq)
      ;({ cursor } = summary)
    }
  }
  for (const each of steps) {
    if (each.does === 'append') {
      const story = stories.get(each.run) ?? new Events(`run_${each.run}`, { afterMs: each.run * 1000 + created++ })
      const isNew = !stories.has(each.run)
      stories.set(each.run, story)
      if (!isNew) story.note('x')
      const events = story.made.slice(isNew ? 0 : -1)
      await logs[each.run % 2]?.append(story.ref, events, { digest: story.digest })
    } else if (each.does === 'prune') {
      const story = stories.get(each.run)
      if (story !== undefined) await logs[each.run % 2]?.prune({ only: [story.ref] })
      stories.delete(each.run)
      seen.delete(`run_${each.run}`)
    } else if ('at' in each) damage(each, { index, kept })
    else if (each.does === 'reopen') logs[each.log] = open(folder)
    else if (each.does === 'list') await collected(logs[each.log]!.list())
    else await follow(logs[each.log]!)
  }
  await follow(open(folder))
  const expected = Object.fromEntries([...stories.values()].map(({ ref, seq }) => [ref.id, seq]))
  expect(Object.fromEntries(seen)).toEqual(expected)
  const bare = `${folder}.bare`
  if (existsSync(folder)) cpSync(folder, bare, { recursive: true, filter: (path) => !path.endsWith('.index') })
  expect(await lists(logs[0]!)).toEqual(await lists(open(bare)))
}

function damage(
  { does, at }: { readonly does: string; readonly at: number },
  { index, kept }: { readonly index: string; readonly kept: string },
): void {
  if ((does === 'restore' || does === 'overwrite') && existsSync(kept)) {
    if (does === 'restore') rmSync(index, { force: true })
    copyFileSync(kept, index)
  }
  if (!existsSync(index)) return
  const { size } = statSync(index)
  if (does === 'remove') rmSync(index)
  if (does === 'keep') copyFileSync(index, kept)
  if (does === 'cut') truncateSync(index, Math.floor(size * at))
  if (does === 'damage') {
    const bytes = readFileSync(index)
    const from = Math.floor(size * at)
    bytes.fill(0, from, Math.min(size, from + 30))
    writeFileSync(index, bytes)
  }
}

vi.setConfig({ testTimeout: timeLimit(60_000) })
