import { expectSame } from '../expect.js'
import { Events, queuedStory, runStory, threadStory } from './story.js'
import { RUN, collectAll, expectRejected, expectStored, runRef, threadRef, waitUntil } from './law-bench.js'
import type { LogLaw } from './law-bench.js'
import { fillStore, FILLED, summaryIds } from './listing-laws.js'
import type { LogStore, Post } from '#core/log/log.js'
import type { LogRef } from '#core/log/ref.js'
import type { DurableEvent } from '#core/state/events.js'
import { withTimeout } from '#util/timeout.js'

/** Laws about stored events. */
export const keepingLaws = {
  keeps_in_order: {
    says: 'Events are read in order, by log, after any number; an unknown log has none.',
    async holds({ store, again }) {
      const [events, other] = [runStory('run_a', 5), runStory('run_b', 2)]
      await store.append(RUN, events.slice(0, 1))
      await store.append(runRef('run_b'), other)
      await store.append(RUN, events.slice(1, 3))
      await store.append(RUN, [])
      await store.append(RUN, events.slice(3))
      for (const log of [store, await again()]) {
        await expectStored(log, RUN, { events })
        await expectStored(log, RUN, { events: events.slice(2), after: 2 })
        await expectStored(log, RUN, { events: [], after: 5 })
        await expectStored(log, runRef('run_b'), { events: other })
        await expectStored(log, runRef('run_unknown'), { events: [] })
      }
    },
  },
  separates_kinds: {
    says: 'A run and a thread with one id have separate logs, with events of any kind.',
    async holds({ store, again }) {
      const [events, messages] = [runStory('same', 2), threadStory(3)]
      await store.append(runRef('same'), events)
      await store.append(threadRef('same'), messages.slice(0, 1))
      await store.append(threadRef('same'), messages.slice(1))
      await expectRejected(
        'a gap in a thread',
        store.append(threadRef('same'), threadStory(5).slice(4)),
        'store_failure',
      )
      for (const log of [store, await again()]) {
        await expectStored(log, runRef('same'), { events })
        await expectStored(log, threadRef('same'), { events: messages })
        await expectStored(log, threadRef('same'), { events: messages.slice(2), after: 2 })
        expectSame('the runs', (await collectAll(log.list({ kind: 'run' }))).length, 1)
        expectSame('the threads', (await collectAll(log.list({ kind: 'thread' }))).length, 1)
      }
    },
  },
  keeps_texts: {
    says: 'Any JSON is stored as it is, however long or strange, under any id.',
    async holds({ store, again }) {
      const strange = ['', '\u0000\u001f', '"\\\n\r\u2028', 'Schön 🎈', '\ud800', '%s $1 \'"; --', 'x'.repeat(300_000)]
      const ids = ['run_1', 'RUN_1', 'Run_1', 'a.b', 'a:b', 'a-b', '..', 'con', 'x'.repeat(128), 'X'.repeat(128)]
      for (const runId of ids) await store.append(runRef(runId), runStory(runId, 1))
      const events = new Events('run_texts')
      for (const text of strange) events.note(text)
      await store.append(runRef('run_texts'), events.made)
      const log = await again()
      await expectStored(log, runRef('run_texts'), { events: events.made })
      for (const runId of ids) await expectStored(log, runRef(runId), { events: runStory(runId, 1) })
    },
  },
  keeps_many: {
    says: 'A run of a thousand events is read completely.',
    async holds({ store }) {
      const events = runStory('run_a', 1000)
      for (let start = 0; start < events.length; start += 50) {
        await store.append(RUN, events.slice(start, start + 50))
      }
      await expectStored(store, RUN, { events })
      await expectStored(store, RUN, { events: events.slice(499), after: 499 })
    },
  },
  refuses_gaps: {
    says: 'Events that do not follow are rejected, and none of them is stored.',
    async holds({ store }) {
      const events = runStory('run_a', 6)
      const eventsNumbered = (...numbers: readonly number[]): DurableEvent[] =>
        events.filter((event) => numbers.includes(event.seq))
      await store.append(RUN, eventsNumbered(1, 2))
      await expectRejected('an append that leaves one out', store.append(RUN, eventsNumbered(4)), 'store_failure')
      await expectRejected('an append with a gap in it', store.append(RUN, eventsNumbered(3, 5)), 'store_failure')
      await expectRejected('an append once more', store.append(RUN, eventsNumbered(2)), 'store_failure')
      await expectRejected('a second beginning', store.append(RUN, eventsNumbered(1)), 'run_exists')
      await expectStored(store, RUN, { events: eventsNumbered(1, 2) })
      await store.append(RUN, eventsNumbered(3, 4))
      await expectStored(store, RUN, { events: eventsNumbered(1, 2, 3, 4) })
    },
  },
  goes_on_from_anywhere: {
    says: 'A log takes a run whose beginning it has not seen, from the event at which it is resumed.',
    async holds({ store }) {
      const events = runStory('run_a', 8).slice(4)
      await store.append(RUN, events.slice(0, 2))
      await store.append(RUN, events.slice(2))
      await expectStored(store, RUN, { events })
    },
  },
  keeps_what_it_said: {
    says: 'Events are stored if and only if their append resolved, however often the connection is lost.',
    async holds({ store, again, kill }) {
      const events = new Events('run_a')
      const first = events.made.slice()
      await store.append(RUN, first)
      for (let round = 0; round < 12; round++) {
        const next = events.note(`Round ${round}.`)
        const appending = store.append(RUN, [next])
        const [kept] = await Promise.allSettled([appending, kill?.()])
        if (kept.status === 'rejected') events.made.pop()
        await expectStored(await again(), RUN, { events: events.made })
      }
    },
  },
  one_of_two_writers: {
    says: 'If two writers append the same event at once, each through its own store object, one is rejected.',
    async holds({ store, again }) {
      const other = await again()
      const events = new Events('run_a')
      await store.append(RUN, events.made.slice())
      for (let round = 0; round < 10; round++) {
        const next = [store, other].map((_, index) => ({ ...events.note(`By ${index}.`), seq: round + 2 }))
        const outcomes = await Promise.allSettled(
          [store, other].map((log, index) => log.append(RUN, [next[index] as DurableEvent])),
        )
        const kept = next.filter((_, index) => outcomes[index]?.status === 'fulfilled')
        expectSame(`appends kept of two in round ${round}`, kept.length, 1)
        await expectStored(other, RUN, { events: kept, after: round + 1 })
      }
    },
  },
} as const satisfies Record<string, LogLaw>

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
  keeps_what_is_queued: {
    says: 'A run that waits to be begun is never removed.',
    async holds({ store, again }) {
      const { ref, made, digest } = queuedStory('run_q')
      await store.append(ref, made, { digest })
      const log = await again()
      expectSame('removed by age', await log.prune({ olderThanMs: 0, keep: 0, also: ['paused', 'interrupted'] }), 0)
      expectSame('removed by name', await log.prune({ only: [ref] }), 0)
      await expectStored(log, ref, { events: made })
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
      expectSame('the referrers of a run', await listReferrers(runRef('run_1')), [
        'run run_2',
        'run run_3',
        'thread run_1',
      ])
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

const LONG_MS = 60_000

/** Laws about claims. */
export const owningLaws = {
  one_owner: {
    says: 'Only its owner appends to a claimed log; after its release, anybody can.',
    async holds({ store, again }) {
      const events = runStory('run_a', 6)
      const other = await again()
      expectSame('the first claim', await store.claim(RUN, 'ann', LONG_MS), true)
      expectSame('the claim of another', await other.claim(RUN, 'bob', LONG_MS), false)
      expectSame('the release by another', await other.claim(RUN, 'bob', 0), false)
      await expectRejected('an append by another', other.append(RUN, events.slice(0, 1), { owner: 'bob' }), 'run_owned')
      await expectRejected('an append without an owner', other.append(RUN, events.slice(0, 1)), 'run_owned')
      await expectStored(other, RUN, { events: [] })
      await store.append(RUN, events.slice(0, 2), { owner: 'ann' })
      expectSame('the claim of its owner', await store.claim(RUN, 'ann', LONG_MS), true)
      await store.append(RUN, events.slice(2, 3), { owner: 'ann' })
      expectSame('the claim of another run', await other.claim(runRef('run_b'), 'bob', LONG_MS), true)
      expectSame('the release', await store.claim(RUN, 'ann', 0), true)
      await expectRejected(
        'an append by the one that released it',
        store.append(RUN, events.slice(3, 4), { owner: 'ann' }),
        'run_owned',
      )
      expectSame('the claim of the next', await other.claim(RUN, 'bob', LONG_MS), true)
      await other.append(RUN, events.slice(3, 4), { owner: 'bob' })
      expectSame('the release', await other.claim(RUN, 'bob', 0), true)
      await store.append(RUN, events.slice(4))
      await expectStored(other, RUN, { events })
    },
  },
  lapses: {
    says: 'An expired claim can be taken over; its old owner is then rejected, also in the middle of the run.',
    async holds({ store, again }) {
      const events = runStory('run_a', 5)
      const other = await again()
      expectSame('the first claim', await store.claim(RUN, 'ann', 20), true)
      await store.append(RUN, events.slice(0, 2), { owner: 'ann' })
      await waitUntil('an expired claim to be taken over', () => other.claim(RUN, 'bob', LONG_MS))
      await expectRejected(
        'an append by the old owner',
        store.append(RUN, events.slice(2, 3), { owner: 'ann' }),
        'run_owned',
      )
      expectSame('the claim of the old owner', await store.claim(RUN, 'ann', LONG_MS), false)
      await other.append(RUN, events.slice(2, 4), { owner: 'bob' })
      await expectRejected(
        'an append by the old owner',
        store.append(RUN, events.slice(4), { owner: 'ann' }),
        'run_owned',
      )
      await other.append(RUN, events.slice(4), { owner: 'bob' })
      await expectStored(store, RUN, { events })
      await expectStored(other, RUN, { events })
    },
  },
  one_of_many: {
    says: 'If many claim a log at once, one succeeds.',
    async holds({ store, again }) {
      const logs = [store, await again()]
      for (let round = 0; round < 5; round++) {
        const runId = `run_${round}`
        await store.append(runRef(runId), runStory(runId, 2))
        const claims = Array.from({ length: 16 }, async (_, index) => {
          return (await logs[index % 2]?.claim(runRef(runId), `owner_${index}`, LONG_MS)) === true
        })
        const won = (await Promise.all(claims)).flatMap((isOurs, index) => (isOurs ? [index] : []))
        expectSame('the claims that were granted of 16', won.length, 1)
        const [winner = 0] = won
        await logs[winner % 2]?.append(runRef(runId), runStory(runId, 3).slice(2), { owner: `owner_${winner}` })
        await expectStored(store, runRef(runId), { events: runStory(runId, 3) })
      }
    },
  },
  owns_threads: {
    says: 'A thread is claimed like a run, and independently of a run with its id.',
    async holds({ store, again }) {
      const messages = threadStory(3)
      const other = await again()
      expectSame('the claim', await store.claim(threadRef('same'), 'ann', LONG_MS), true)
      expectSame('the claim of the run', await other.claim(runRef('same'), 'bob', LONG_MS), true)
      expectSame('the claim of another', await other.claim(threadRef('same'), 'bob', LONG_MS), false)
      const rejected = other.append(threadRef('same'), messages, { owner: 'bob' })
      await expectRejected('an append by another', rejected, 'run_owned')
      await store.append(threadRef('same'), messages, { owner: 'ann' })
      expectSame('the owner', (await other.inspect(threadRef('same')))?.owner, 'ann')
      expectSame('the release', await store.claim(threadRef('same'), 'ann', 0), true)
      expectSame('the owner', (await other.inspect(threadRef('same')))?.owner, null)
      await expectStored(other, threadRef('same'), { events: messages })
    },
  },
} as const satisfies Record<string, LogLaw>

const THREAD = threadRef('thread_a')

const posts: readonly Post[] = ['first', 'second', 'third'].map((text, index) => {
  return { id: `post:${index}/ä`, body: { text, quote: '"\\\n\u0000' } }
})

/** Laws about inboxes, and about readers that wait for events. */
export const inboxLaws = {
  delivers_posts_once: {
    says: 'The owner takes posts in the order of arrival; posts with one id are one post, also after it has left the inbox.',
    async holds({ store, again }) {
      const other = await again()
      for (const post of posts.slice(0, 2)) await other.post(THREAD, post)
      await other.post(THREAD, { id: 'post:0/ä', body: 'another body' })
      await store.claim(THREAD, 'ann', LONG_MS)
      expectSame('the posts', await store.takePosts(THREAD, 'ann'), posts.slice(0, 2))
      await store.append(THREAD, threadStory(1), { owner: 'ann', posts: posts.slice(0, 2).map(({ id }) => id) })
      expectSame('the posts after that', await store.takePosts(THREAD, 'ann'), [])
      for (const post of posts) await other.post(THREAD, post)
      expectSame('the next posts', await store.takePosts(THREAD, 'ann'), posts.slice(2))
      expectSame('the posts to the run', await takenBy(store, other), [])
    },
  },
  gives_posts_to_the_owner: {
    says: 'Only the owner of a log takes its posts.',
    async holds({ store, again }) {
      const other = await again()
      await store.post(THREAD, { id: 'post_1', body: null })
      await expectRejected('taking without a claim', store.takePosts(THREAD, 'ann'), 'run_owned')
      await store.claim(THREAD, 'ann', LONG_MS)
      await expectRejected('taking by another', other.takePosts(THREAD, 'bob'), 'run_owned')
      expectSame('the posts', await store.takePosts(THREAD, 'ann'), [{ id: 'post_1', body: null }])
    },
  },
  keeps_posts_of_lost_owners: {
    says: 'A post goes to the next owner if the one that took it lost its claim before it stored events that name it.',
    async holds({ store, again }) {
      const other = await again()
      const [first, second] = posts as readonly [Post, Post]
      await store.post(THREAD, first)
      await store.claim(THREAD, 'ann', 20)
      expectSame('the posts', await store.takePosts(THREAD, 'ann'), [first])
      await store.append(THREAD, threadStory(1), { owner: 'ann', posts: [first.id] })
      await store.post(THREAD, second)
      expectSame('the next posts', await store.takePosts(THREAD, 'ann'), [second])
      await waitUntil('an expired claim to be taken over', () => other.claim(THREAD, 'bob', LONG_MS))
      expectSame('the posts of the next owner', await other.takePosts(THREAD, 'bob'), [second])
    },
  },
  keeps_posts_until_named: {
    says: 'A post is given again, to this owner and to the next, until an append has named it.',
    async holds({ store, again }) {
      const other = await again()
      const [first, second] = posts as readonly [Post, Post]
      for (const post of [first, second]) await other.post(THREAD, post)
      await store.claim(THREAD, 'ann', LONG_MS)
      expectSame('the posts', await store.takePosts(THREAD, 'ann'), [first, second])
      expectSame('the posts once more', await store.takePosts(THREAD, 'ann'), [first, second])
      await store.append(THREAD, threadStory(1), { owner: 'ann', posts: [second.id] })
      expectSame('the posts after that', await store.takePosts(THREAD, 'ann'), [first])
      await store.claim(THREAD, 'ann', 0)
      expectSame('the claim of another', await other.claim(THREAD, 'bob', LONG_MS), true)
      expectSame('the posts of the next owner', await other.takePosts(THREAD, 'bob'), [first])
      await other.append(THREAD, threadStory(2).slice(1), { owner: 'bob', posts: [first.id] })
      for (const post of [first, second]) await store.post(THREAD, post)
      expectSame('the posts that were sent again', await other.takePosts(THREAD, 'bob'), [])
    },
  },
  follows: {
    says: 'A follower reads the stored events, then those that are stored later, in any process, until it is aborted.',
    async holds({ store, again }) {
      if (store.follow === undefined) return
      const other = await again()
      const events = runStory('run_a', 6)
      await store.append(RUN, events.slice(0, 2))
      const controller = new AbortController()
      const followed = store.follow(RUN, { after: 1, signal: controller.signal })[Symbol.asyncIterator]()
      const nextPost = () => withTimeout(followed.next(), 5000)
      expectSame('the stored event', (await nextPost()).value, events[1])
      const waiting = nextPost()
      await store.append(RUN, events.slice(2, 4))
      expectSame('the event that was waited for', (await waiting).value, events[2])
      expectSame('the event after that', (await nextPost()).value, events[3])
      await other.append(RUN, events.slice(4))
      expectSame('an event of another store object', (await nextPost()).value, events[4])
      expectSame('the last event', (await nextPost()).value, events[5])
      const last = nextPost()
      controller.abort()
      expectSame('the end', (await last).done, true)
      const aborted = collectAll(store.follow(RUN, { signal: controller.signal }))
      expectSame('the events for an aborted signal', await withTimeout(aborted, 5000), [])
    },
  },
} as const satisfies Record<string, LogLaw>

/** The posts to a run with the thread's id. */
async function takenBy(store: LogStore, other: LogStore): Promise<readonly Post[]> {
  await other.claim(runRef('thread_a'), 'bob', LONG_MS)
  await store.post(runRef('thread_b'), { id: 'post_1', body: 1 })
  return other.takePosts(runRef('thread_a'), 'bob')
}
