import type { LogRef } from '#core/log/ref.js'
import type { LogStore } from '#core/log/log.js'
import { Events, threadStory } from './events.js'
import { expectSame } from '../expect.js'
import { collectAll, expectStored, runRef, threadRef } from './law.js'
import type { LogLaw } from './law.js'
import { fillStore, FILLED, summaryIds } from './looking.js'

/** Laws about the removal of logs. */
export const removingLaws = {
  prunes_what_has_ended: {
    says: 'Only ended runs are removed, with their child runs, unless others are asked for; never a running one.',
    async holds({ store, again }) {
      await fillStore(store)
      const log = await again()
      expectSame('runs removed that are older than 100 years', await log.prune({ olderThanMs: 3_200_000_000_000 }), 0)
      expectSame('runs removed after the two newest', await log.prune({ keep: 2 }), 2)
      const left = FILLED.filter((runId) => runId !== 'run_completed' && runId !== 'run_child')
      expectSame('the runs that are left', summaryIds(await collectAll(log.list())), [...left].reverse())
      const removed = [await log.inspect(runRef('run_child')), await collectAll(log.read(runRef('run_child')))]
      expectSame('a run that was removed', removed, [null, []])
      expectSame('runs removed', await log.prune({ keep: 0, also: ['paused', 'interrupted'] }), 4)
      expectSame('the runs that are left', summaryIds(await collectAll(log.list())), ['run_running'])
      const { ref, made, digest } = new Events('run_completed')
      await log.append(ref, made, { digest })
      expectSame('a run that begins again', (await log.inspect(ref))?.lastSeq, 1)
    },
  },
  keeps_what_is_referred_to: {
    says: 'A log that another one refers to is not removed before that one.',
    async holds({ store, again }) {
      await storeEndedRun(store, 'run_1')
      await storeEndedRun(store, 'run_2', [runRef('run_1')])
      await storeEndedRun(store, 'run_3', [runRef('run_2')])
      await storeEndedRun(store, 'run_4')
      await store.append(threadRef('t_1'), threadStory(1), { references: [runRef('run_3')] })
      const log = await again()
      expectSame('runs removed', await log.prune({ keep: 0 }), 1)
      expectSame('the runs that are left', summaryIds(await collectAll(log.list())), ['run_3', 'run_2', 'run_1'])
      expectSame('runs removed by name', await log.prune({ only: [runRef('run_1'), runRef('run_2')] }), 0)
      expectSame('logs removed by name', await log.prune({ only: [threadRef('t_1'), runRef('run_3')] }), 2)
      await expectStored(log, threadRef('t_1'), { events: [] })
      expectSame('runs removed after that', await log.prune({ keep: 0 }), 2)
      expectSame('the runs that are left', await collectAll(log.list()), [])
    },
  },
  names_referrers: {
    says: 'A log names the logs that refer to it, as long as these are there.',
    async holds({ store, again }) {
      await storeEndedRun(store, 'run_1')
      await storeEndedRun(store, 'run_2', [runRef('run_1')])
      await storeEndedRun(store, 'run_3', [runRef('run_1')])
      await store.append(threadRef('run_1'), threadStory(1), { references: [runRef('run_1'), runRef('run_2')] })
      const log = await again()
      const listReferrers = async (ref: LogRef): Promise<readonly string[]> =>
        ((await log.referrers?.(ref)) ?? []).map(({ kind, id }) => `${kind} ${id}`).sort()
      expectSame('the referrers of a run', await listReferrers(runRef('run_1')), ['run run_2', 'run run_3', 'thread run_1'])
      expectSame('the referrers of a thread', await listReferrers(threadRef('run_1')), [])
      await log.prune({ only: [runRef('run_3'), threadRef('run_1')] })
      expectSame('the referrers that are left', await listReferrers(runRef('run_1')), ['run run_2'])
      expectSame('the referrers of an unknown log', await listReferrers(runRef('run_9')), [])
    },
  },
  removes_by_name: {
    says: 'Logs that are named are removed with their inboxes, whatever their status, unless somebody owns them.',
    async holds({ store, again }) {
      await fillStore(store)
      const other = await again()
      for (const id of ['t_1', 't_2', 't_3']) await store.append(threadRef(id), threadStory(2))
      await store.post(threadRef('t_1'), { id: 'post_1', body: 1 })
      await store.claim(threadRef('t_2'), 'ann', 60_000)
      const only: LogRef[] = [threadRef('t_1'), threadRef('t_2'), threadRef('t_9'), runRef('run_paused')]
      expectSame('logs removed', await other.prune({ only: [...only, runRef('run_running')] }), 2)
      const threads = await collectAll(other.list({ kind: 'thread' }))
      expectSame('the threads that are left', threads.map(({ threadId }) => threadId).sort(), ['t_2', 't_3'])
      expectSame('a paused run', await other.inspect(runRef('run_paused')), null)
      await other.claim(threadRef('t_1'), 'bob', 60_000)
      expectSame('the posts to a removed thread', await other.takePosts(threadRef('t_1'), 'bob'), [])
      await other.append(threadRef('t_1'), threadStory(1), { owner: 'bob' })
      await expectStored(store, threadRef('t_1'), { events: threadStory(1) })
    },
  },
  removes_for_its_owner: {
    says: 'The owner of a log can remove it with others without giving it back first, unless somebody else owns one of them.',
    async holds({ store, again }) {
      const other = await again()
      for (const id of ['t_1', 't_2']) await store.append(threadRef(id), threadStory(2))
      await storeEndedRun(store, 'run_1')
      await store.claim(threadRef('t_1'), 'ann', 60_000)
      await other.claim(threadRef('t_2'), 'bob', 60_000)
      const only = [threadRef('t_1'), runRef('run_1')]
      expectSame(
        'logs removed with one of another owner',
        await store.prune({ only: [...only, threadRef('t_2')], owner: 'ann' }),
        0,
      )
      await other.claim(runRef('run_1'), 'bob', 60_000)
      expectSame('logs removed with a run of another owner', await store.prune({ only, owner: 'ann' }), 0)
      await other.claim(runRef('run_1'), 'bob', 0)
      await expectStored(store, threadRef('t_1'), { events: threadStory(2) })
      expectSame('logs removed for an owner', await store.prune({ only, owner: 'ann' }), 2)
      const left = await collectAll(other.list({ kind: 'thread' }))
      expectSame('the threads that are left', left.map(({ threadId }) => threadId).sort(), ['t_2'])
      expectSame('a claim of the removed log', await other.claim(threadRef('t_1'), 'bob', 60_000), true)
      await other.append(threadRef('t_1'), threadStory(1), { owner: 'bob' })
      await expectStored(store, threadRef('t_1'), { events: threadStory(1) })
      await other.append(threadRef('t_2'), threadStory(3).slice(2), { owner: 'bob' })
      await expectStored(store, threadRef('t_2'), { events: threadStory(3) })
    },
  },
} as const satisfies Record<string, LogLaw>

/** Stores a completed run. */
async function storeEndedRun(store: LogStore, runId: string, references: readonly LogRef[] = []): Promise<void> {
  const events = new Events(runId, { afterMs: Number(runId.slice(-1)) * 1000 })
  events.completes()
  await store.append(events.ref, events.made, { digest: events.digest, references })
}
