import type { LogRef } from '#core/log/ref.js'
import type { LogStore } from '#core/log/log.js'
import { Events, thread } from './events.js'
import { expectSame } from '../expect.js'
import { all, expectStored, runOf, threadOf } from './law.js'
import type { LogLaw } from './law.js'
import { fill, FILLED, idsOf } from './looking.js'

/** Laws about the removal of logs. */
export const removingLaws = {
  prunes_what_has_ended: {
    says: 'Only ended runs are removed, with their child runs, unless others are asked for; never a running one.',
    async holds({ store, again }) {
      await fill(store)
      const log = await again()
      expectSame('runs removed that are older than 100 years', await log.prune({ olderThanMs: 3_200_000_000_000 }), 0)
      expectSame('runs removed after the two newest', await log.prune({ keep: 2 }), 2)
      const left = FILLED.filter((runId) => runId !== 'run_completed' && runId !== 'run_child')
      expectSame('the runs that are left', idsOf(await all(log.list())), [...left].reverse())
      const removed = [await log.inspect(runOf('run_child')), await all(log.read(runOf('run_child')))]
      expectSame('a run that was removed', removed, [null, []])
      expectSame('runs removed', await log.prune({ keep: 0, also: ['paused', 'interrupted'] }), 4)
      expectSame('the runs that are left', idsOf(await all(log.list())), ['run_running'])
      const { ref, made, digest } = new Events('run_completed')
      await log.append(ref, made, { digest })
      expectSame('a run that begins again', (await log.inspect(ref))?.lastSeq, 1)
    },
  },
  keeps_what_is_referred_to: {
    says: 'A log that another one refers to is not removed before that one.',
    async holds({ store, again }) {
      await ended(store, 'run_1')
      await ended(store, 'run_2', [runOf('run_1')])
      await ended(store, 'run_3', [runOf('run_2')])
      await ended(store, 'run_4')
      await store.append(threadOf('t_1'), thread(1), { references: [runOf('run_3')] })
      const log = await again()
      expectSame('runs removed', await log.prune({ keep: 0 }), 1)
      expectSame('the runs that are left', idsOf(await all(log.list())), ['run_3', 'run_2', 'run_1'])
      expectSame('runs removed by name', await log.prune({ only: [runOf('run_1'), runOf('run_2')] }), 0)
      expectSame('logs removed by name', await log.prune({ only: [threadOf('t_1'), runOf('run_3')] }), 2)
      await expectStored(log, threadOf('t_1'), { events: [] })
      expectSame('runs removed after that', await log.prune({ keep: 0 }), 2)
      expectSame('the runs that are left', await all(log.list()), [])
    },
  },
  names_referrers: {
    says: 'A log names the logs that refer to it, as long as these are there.',
    async holds({ store, again }) {
      await ended(store, 'run_1')
      await ended(store, 'run_2', [runOf('run_1')])
      await ended(store, 'run_3', [runOf('run_1')])
      await store.append(threadOf('run_1'), thread(1), { references: [runOf('run_1'), runOf('run_2')] })
      const log = await again()
      const referrers = async (ref: LogRef): Promise<readonly string[]> =>
        ((await log.referrers?.(ref)) ?? []).map(({ kind, id }) => `${kind} ${id}`).sort()
      expectSame('the referrers of a run', await referrers(runOf('run_1')), ['run run_2', 'run run_3', 'thread run_1'])
      expectSame('the referrers of a thread', await referrers(threadOf('run_1')), [])
      await log.prune({ only: [runOf('run_3'), threadOf('run_1')] })
      expectSame('the referrers that are left', await referrers(runOf('run_1')), ['run run_2'])
      expectSame('the referrers of an unknown log', await referrers(runOf('run_9')), [])
    },
  },
  removes_by_name: {
    says: 'Logs that are named are removed with their inboxes, whatever their status, unless somebody owns them.',
    async holds({ store, again }) {
      await fill(store)
      const other = await again()
      for (const id of ['t_1', 't_2', 't_3']) await store.append(threadOf(id), thread(2))
      await store.post(threadOf('t_1'), { id: 'post_1', body: 1 })
      await store.claim(threadOf('t_2'), 'ann', 60_000)
      const only: LogRef[] = [threadOf('t_1'), threadOf('t_2'), threadOf('t_9'), runOf('run_paused')]
      expectSame('logs removed', await other.prune({ only: [...only, runOf('run_running')] }), 2)
      const threads = await all(other.list({ kind: 'thread' }))
      expectSame('the threads that are left', threads.map(({ threadId }) => threadId).sort(), ['t_2', 't_3'])
      expectSame('a paused run', await other.inspect(runOf('run_paused')), null)
      await other.claim(threadOf('t_1'), 'bob', 60_000)
      expectSame('the posts to a removed thread', await other.takePosts(threadOf('t_1'), 'bob'), [])
      await other.append(threadOf('t_1'), thread(1), { owner: 'bob' })
      await expectStored(store, threadOf('t_1'), { events: thread(1) })
    },
  },
  removes_for_its_owner: {
    says: 'The owner of a log can remove it with others without giving it back first, unless somebody else owns one of them.',
    async holds({ store, again }) {
      const other = await again()
      for (const id of ['t_1', 't_2']) await store.append(threadOf(id), thread(2))
      await ended(store, 'run_1')
      await store.claim(threadOf('t_1'), 'ann', 60_000)
      await other.claim(threadOf('t_2'), 'bob', 60_000)
      const only = [threadOf('t_1'), runOf('run_1')]
      expectSame(
        'logs removed with one of another owner',
        await store.prune({ only: [...only, threadOf('t_2')], owner: 'ann' }),
        0,
      )
      await other.claim(runOf('run_1'), 'bob', 60_000)
      expectSame('logs removed with a run of another owner', await store.prune({ only, owner: 'ann' }), 0)
      await other.claim(runOf('run_1'), 'bob', 0)
      await expectStored(store, threadOf('t_1'), { events: thread(2) })
      expectSame('logs removed for an owner', await store.prune({ only, owner: 'ann' }), 2)
      const left = await all(other.list({ kind: 'thread' }))
      expectSame('the threads that are left', left.map(({ threadId }) => threadId).sort(), ['t_2'])
      expectSame('a claim of the removed log', await other.claim(threadOf('t_1'), 'bob', 60_000), true)
      await other.append(threadOf('t_1'), thread(1), { owner: 'bob' })
      await expectStored(store, threadOf('t_1'), { events: thread(1) })
      await other.append(threadOf('t_2'), thread(3).slice(2), { owner: 'bob' })
      await expectStored(store, threadOf('t_2'), { events: thread(3) })
    },
  },
} as const satisfies Record<string, LogLaw>

/** Stores a completed run. */
async function ended(store: LogStore, runId: string, references: readonly LogRef[] = []): Promise<void> {
  const events = new Events(runId, { afterMs: Number(runId.slice(-1)) * 1000 })
  events.completes()
  await store.append(events.ref, events.made, { digest: events.digest, references })
}
