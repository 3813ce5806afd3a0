import { story, thread } from './events.js'
import { expectEqual, expectRejected, expectStored, runOf, threadOf, until } from './law.js'
import type { LogLaw } from './law.js'

const LONG_MS = 60_000

/** Laws about claims. */
export const owningLaws = {
  one_owner: {
    says: 'Only its owner appends to a claimed log; after its release, anybody can.',
    async holds({ store, again }) {
      const events = story('run_a', 6)
      const other = await again()
      expectEqual('the first claim', await store.claim(runOf('run_a'), 'ann', LONG_MS), true)
      expectEqual('the claim of another', await other.claim(runOf('run_a'), 'bob', LONG_MS), false)
      expectEqual('the release by another', await other.claim(runOf('run_a'), 'bob', 0), false)
      await expectRejected('an append by another', other.append(runOf('run_a'), events.slice(0, 1), { owner: 'bob' }), [
        'run_owned',
      ])
      await expectRejected('an append by nobody', other.append(runOf('run_a'), events.slice(0, 1)), ['run_owned'])
      await expectStored(other, runOf('run_a'), { events: [] })
      await store.append(runOf('run_a'), events.slice(0, 2), { owner: 'ann' })
      expectEqual('the claim of its owner', await store.claim(runOf('run_a'), 'ann', LONG_MS), true)
      await store.append(runOf('run_a'), events.slice(2, 3), { owner: 'ann' })
      expectEqual('the claim of another run', await other.claim(runOf('run_b'), 'bob', LONG_MS), true)
      expectEqual('the release', await store.claim(runOf('run_a'), 'ann', 0), true)
      await expectRejected(
        'an append by the one that released it',
        store.append(runOf('run_a'), events.slice(3, 4), { owner: 'ann' }),
        ['run_owned'],
      )
      expectEqual('the claim of the next', await other.claim(runOf('run_a'), 'bob', LONG_MS), true)
      await other.append(runOf('run_a'), events.slice(3, 4), { owner: 'bob' })
      expectEqual('the release', await other.claim(runOf('run_a'), 'bob', 0), true)
      await store.append(runOf('run_a'), events.slice(4))
      await expectStored(other, runOf('run_a'), { events })
    },
  },
  lapses: {
    says: 'An expired claim can be taken over; its old owner is then rejected, also in the middle of the run.',
    async holds({ store, again }) {
      const events = story('run_a', 5)
      const other = await again()
      expectEqual('the first claim', await store.claim(runOf('run_a'), 'ann', 20), true)
      await store.append(runOf('run_a'), events.slice(0, 2), { owner: 'ann' })
      await until('an expired claim to be taken over', () => other.claim(runOf('run_a'), 'bob', LONG_MS))
      await expectRejected(
        'an append by the old owner',
        store.append(runOf('run_a'), events.slice(2, 3), { owner: 'ann' }),
        ['run_owned'],
      )
      expectEqual('the claim of the old owner', await store.claim(runOf('run_a'), 'ann', LONG_MS), false)
      await other.append(runOf('run_a'), events.slice(2, 4), { owner: 'bob' })
      await expectRejected(
        'an append by the old owner',
        store.append(runOf('run_a'), events.slice(4), { owner: 'ann' }),
        ['run_owned'],
      )
      await other.append(runOf('run_a'), events.slice(4), { owner: 'bob' })
      await expectStored(store, runOf('run_a'), { events })
      await expectStored(other, runOf('run_a'), { events })
    },
  },
  one_of_many: {
    says: 'If many claim a log at once, one succeeds.',
    async holds({ store, again }) {
      const logs = [store, await again()]
      for (let round = 0; round < 5; round++) {
        const runId = `run_${round}`
        await store.append(runOf(runId), story(runId, 2))
        const claims = Array.from({ length: 16 }, async (_, index) => {
          return (await logs[index % 2]?.claim(runOf(runId), `owner_${index}`, LONG_MS)) === true
        })
        const won = (await Promise.all(claims)).flatMap((isOurs, index) => (isOurs ? [index] : []))
        expectEqual('the claims that were granted of 16', won.length, 1)
        const [winner = 0] = won
        await logs[winner % 2]?.append(runOf(runId), story(runId, 3).slice(2), { owner: `owner_${winner}` })
        await expectStored(store, runOf(runId), { events: story(runId, 3) })
      }
    },
  },
  owns_threads: {
    says: 'A thread is claimed like a run, and independently of a run with its id.',
    async holds({ store, again }) {
      const messages = thread(3)
      const other = await again()
      expectEqual('the claim', await store.claim(threadOf('same'), 'ann', LONG_MS), true)
      expectEqual('the claim of the run', await other.claim(runOf('same'), 'bob', LONG_MS), true)
      expectEqual('the claim of another', await other.claim(threadOf('same'), 'bob', LONG_MS), false)
      const rejected = other.append(threadOf('same'), messages, { owner: 'bob' })
      await expectRejected('an append by another', rejected, ['run_owned'])
      await store.append(threadOf('same'), messages, { owner: 'ann' })
      expectEqual('the owner', (await other.inspect(threadOf('same')))?.owner, 'ann')
      expectEqual('the release', await store.claim(threadOf('same'), 'ann', 0), true)
      expectEqual('the owner', (await other.inspect(threadOf('same')))?.owner, null)
      await expectStored(other, threadOf('same'), { events: messages })
    },
  },
} as const satisfies Record<string, LogLaw>
