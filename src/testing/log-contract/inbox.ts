import type { LogStore, Post } from '#core/log/log.js'
import { runStory, threadStory } from './events.js'
import { withTimeout } from '#util/timeout.js'
import { expectSame } from '../expect.js'
import { RUN, collectAll, expectRejected, runRef, threadRef, waitUntil } from './law.js'
import type { LogLaw } from './law.js'

const LONG_MS = 60_000
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
