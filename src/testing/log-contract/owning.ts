import { runStory, threadStory } from './events.js'
import { expectSame } from '../expect.js'
import { RUN, expectRejected, expectStored, runRef, threadRef, waitUntil } from './law.js'
import type { LogLaw } from './law.js'

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
