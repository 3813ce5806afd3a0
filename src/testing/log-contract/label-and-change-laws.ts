import type { RunSummary } from '#core/log/run-summary.js'
import type { LogStore } from '#core/log/log.js'
import type { LogKind } from '#core/log/ref.js'
import { expectSame } from '../expect.js'
import { collectAll, runRef, threadRef } from './law-bench.js'
import type { LogLaw } from './law-bench.js'
import { summaryIds } from './listing-laws.js'
import { Events, queuedStory, threadStory } from './story.js'
import type { Beginning } from './story.js'

/** Laws about finding logs: by their labels, by what has changed, and those that wait for a process. */
export const labelAndChangeLaws = {
  finds_by_labels: {
    says: 'Runs are found by their labels, which a writer passes with a digest or in the first event.',
    async holds({ store, again }) {
      for (let index = 0; index < 230; index++) {
        const labels = { agent: index % 2 === 0 ? 'sql' : 'Support', tenant: `t_${index % 3}`, ['%_']: `${index}` }
        const { ref, made, digest } = new Events(numbered(index), { afterMs: index * 1000, labels })
        await store.append(ref, made, index % 5 === 0 ? {} : { digest })
      }
      await store.append(runRef('run_plain'), new Events('run_plain', { afterMs: 900_000 }).made)
      const log = await again()
      const found = async (labels: Readonly<Record<string, string>>): Promise<readonly string[]> =>
        summaryIds(await collectAll(log.list({ labels })))
      const expected = (fits: (index: number) => boolean): string[] =>
        Array.from({ length: 230 }, (_, index) => index)
          .filter(fits)
          .map(numbered)
          .reverse()
      expectSame(
        'the runs of an agent',
        await found({ agent: 'sql' }),
        expected((index) => index % 2 === 0),
      )
      const both = { agent: 'Support', tenant: 't_1' }
      expectSame(
        'those of a tenant too',
        await found(both),
        expected((index) => index % 2 === 1 && index % 3 === 1),
      )
      expectSame('a label of one run', await found({ '%_': '7' }), [numbered(7)])
      expectSame('a label that no run has', await found({ agent: 'support' }), [])
      expectSame('all runs, without labels', (await found({})).length, 231)
      const [summary] = await collectAll(log.list({ labels: { '%_': '8' } }))
      expectSame('the labels in a summary', summary?.labels, { agent: 'sql', tenant: 't_2', '%_': '8' })
      expectSame(
        'by age and label',
        await pageAfter(log, summary),
        expected((index) => index < 8 && index % 2 === 0),
      )
      await log.prune({ only: [runRef(numbered(7))] })
      expectSame('a label of a run that was removed', await found({ '%_': '7' }), [])
    },
  },
  lists_what_has_changed: {
    says: 'After the cursor of a summary come the logs with a later append, in the order of their last one, children included.',
    async holds({ store, again }) {
      const log = await again()
      expectSame('the changes of an empty store', await changedIds(log, null), [])
      const stories = ['run_a', 'run_b', 'run_c', 'run_d'].map((runId, index) => {
        return new Events(runId, { afterMs: 9000 - index * 1000, ...(runId === 'run_c' && { parentRunId: 'run_a' }) })
      })
      for (const { ref, made, digest } of stories) await store.append(ref, made, { digest })
      const all = await collectAll(log.list({ changedAfter: null }))
      expectSame('the order', summaryIds(all), ['run_a', 'run_b', 'run_c', 'run_d'])
      for (const [index, { cursor }] of all.entries())
        expectSame(`the changes after \`${cursor}\``, await changedIds(log, cursor), summaryIds(all).slice(index + 1))
      const last = all.at(-1)?.cursor ?? ''
      await addNote(store, stories[1])
      const [again_b, ...others] = await collectAll((await again()).list({ changedAfter: last }))
      expectSame('what has changed since', [again_b?.runId, again_b?.lastSeq, others], ['run_b', 2, []])
      await store.claim(runRef('run_a'), 'ann', 60_000)
      await store.claim(runRef('run_a'), 'ann', 0)
      expectSame('after a claim', await changedIds(log, again_b?.cursor ?? ''), [])
      await addNote(store, stories[0])
      expectSame('all in their order', await changedIds(log, null), ['run_c', 'run_d', 'run_b', 'run_a'])
      expectSame(
        'those of a parent',
        summaryIds(await collectAll(log.list({ changedAfter: null, parentRunId: 'run_a' }))),
        ['run_c'],
      )
      for (const id of ['t_1', 't_2']) await store.append(threadRef(id), threadStory(1))
      await store.append(threadRef('t_1'), threadStory(2).slice(1))
      const threads = await collectAll(log.list({ kind: 'thread', changedAfter: null }))
      expectSame(
        'the threads',
        threads.map(({ threadId }) => threadId),
        ['t_2', 't_1'],
      )
      expectSame('the runs', (await changedIds(log, again_b?.cursor ?? '')).length, 1)
      const removed = new Events('run_e', { afterMs: 1 })
      removed.completes()
      await store.append(removed.ref, removed.made, { digest: removed.digest })
      const newest = (await collectAll(log.list({ changedAfter: null }))).at(-1)
      await log.prune({ only: [removed.ref] })
      await addNote(store, stories[3])
      // The others may come once more.
      const since = await changedIds(log, newest?.cursor ?? '')
      expectSame('the last change since one that was removed', since.at(-1), 'run_d')
    },
  },
  misses_no_append: {
    says: 'Whoever passes the last cursor again and again sees the last append to every log, whoever wrote it and when.',
    async holds({ store, again }) {
      const logs = [store, await again()]
      const reader = await again()
      const seen: Record<LogKind, Map<string, number>> = { run: new Map(), thread: new Map() }
      const cursors: Record<LogKind, string | null> = { run: null, thread: null }
      const look = async (kind: LogKind): Promise<void> => {
        for await (const summary of reader.list({ kind, changedAfter: cursors[kind] })) {
          seen[kind].set('runId' in summary ? summary.runId : summary.threadId, summary.lastSeq)
          cursors[kind] = summary.cursor
        }
      }
      let left = WRITERS
      const write = async (index: number): Promise<void> => {
        const story = new Events(`run_${index}`, { afterMs: index })
        const thread = threadStory(ROUNDS + 1)
        await logs[index % 2]?.append(story.ref, story.made.slice(), { digest: story.digest })
        for (let round = 0; round < ROUNDS; round++) {
          await addNote(logs[index % 2] ?? store, story)
          await store.append(threadRef(`t_${index}`), thread.slice(round, round + 1))
        }
        left -= 1
      }
      const writing = Promise.all(Array.from({ length: WRITERS }, (_, index) => write(index)))
      while (left > 0) for (const kind of KINDS) await look(kind)
      await writing
      for (const kind of KINDS) await look(kind)
      const counts = (map: ReadonlyMap<string, number>): number[] => [...map.values()]
      expectSame(
        'the last events of the runs',
        counts(seen.run),
        Array.from({ length: WRITERS }, () => ROUNDS + 1),
      )
      expectSame(
        'the last events of the threads',
        counts(seen.thread),
        Array.from({ length: WRITERS }, () => ROUNDS),
      )
    },
  },
  gives_what_waits: {
    says: 'What waits for a process are the oldest queued and interrupted runs at the top that nobody owns, of each tenant so many.',
    async holds({ store, again }) {
      const log = await again()
      expectSame('an empty store', await waitingIds(log), [])
      const queue = (runId: string, beginning: Beginning): Promise<void> => {
        const { ref, made, digest } = queuedStory(runId, beginning)
        return store.append(ref, made, { digest })
      }
      for (let index = 0; index < 130; index++)
        await queue(`a_${1000 + index}`, { afterMs: 10_000 + index, labels: { tenant: 'a' } })
      await queue('b_1', { afterMs: 20_000, labels: { tenant: 'b' } })
      await queue('none_1', { afterMs: 30_000 })
      await queue('none_2', { afterMs: 31_000, labels: { agent: 'sql' } })
      const left = new Events('a_left', { afterMs: 1000, labels: { tenant: 'a' } })
      const child = new Events('child', { afterMs: 0, parentRunId: 'a_left' })
      const [paused, ended] = [new Events('paused'), new Events('ended')]
      paused.pauses()
      ended.completes()
      for (const { ref, made, digest } of [left, child, paused, ended]) await store.append(ref, made, { digest })
      await store.append(runRef('bare'), new Events('bare', { afterMs: 25_000 }).made)
      expectSame('one of each', await waitingIds(log, { perTenant: 1 }), ['a_left', 'b_1', 'bare'])
      const two = ['a_left', 'a_1000', 'b_1', 'bare', 'none_1']
      expectSame('two of each', await waitingIds(log, { perTenant: 2 }), two)
      expectSame('the two oldest', await waitingIds(log, { limit: 2 }), ['a_left', 'a_1000'])
      expectSame('all', (await waitingIds(log, { limit: 1000 })).length, 135)
      const [first, second] = await log.waiting({ limit: 2 })
      expectSame('their statuses', [first?.status, second?.status], ['interrupted', 'queued'])
      await store.claim(runRef('a_left'), 'ann', 60_000)
      await store.claim(runRef('a_1000'), 'ann', 60_000)
      expectSame('without those that are owned', await waitingIds(log, { perTenant: 1 }), ['a_1001', 'b_1', 'bare'])
      await store.claim(runRef('a_1000'), 'ann', 0)
      const story = new Events('b_1', { afterMs: 20_000, labels: { tenant: 'b' } })
      const [begun, ...more] = story.made
      if (begun !== undefined) await store.append(story.ref, [{ ...begun, seq: 2 }, ...more])
      expectSame('the oldest of each again', await waitingIds(log, { perTenant: 1 }), ['a_1000', 'b_1', 'bare'])
      const status = (await collectAll(log.list({ status: 'queued' }))).length
      expectSame('the queued', status, 132)
    },
  },
} as const satisfies Record<string, LogLaw>

const KINDS: readonly LogKind[] = ['run', 'thread']
const WRITERS = 12
const ROUNDS = 8

function numbered(index: number): string {
  return `run_${1000 + index}`
}

async function changedIds(log: LogStore, changedAfter: string | null): Promise<readonly string[]> {
  return summaryIds(await collectAll(log.list({ changedAfter })))
}

async function waitingIds(log: LogStore, options?: Parameters<LogStore['waiting']>[0]): Promise<readonly string[]> {
  return summaryIds(await log.waiting(options))
}

async function pageAfter(log: LogStore, before: RunSummary | undefined): Promise<readonly string[]> {
  return before === undefined ? [] : summaryIds(await collectAll(log.list({ labels: { agent: 'sql' }, before })))
}

async function addNote(log: LogStore, story: Events | undefined): Promise<void> {
  const note = story?.note('One more.')
  if (story !== undefined && note !== undefined) await log.append(story.ref, [note], { digest: story.digest })
}
