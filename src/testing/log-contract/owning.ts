import { expectEqual, expectKept, expectRefused, until } from './law.js'
import type { LogLaw } from './law.js'
import { story } from './keeping.js'

const LONG_MS = 60_000

/** Laws of who may append. */
export const owningLaws = {
  one_owner: {
    says: 'Only the owner appends to a run that is claimed; given back, it is anybody’s.',
    async holds({ store, again }) {
      const events = story('run_a', 6)
      const other = await again()
      expectEqual('the first claim', await store.claim('run_a', 'ann', LONG_MS), true)
      expectEqual('the claim of another', await other.claim('run_a', 'bob', LONG_MS), false)
      expectEqual('giving back what is another’s', await other.claim('run_a', 'bob', 0), false)
      await expectRefused('an append by another', other.append('run_a', events.slice(0, 1), 'bob'), ['run_owned'])
      await expectRefused('an append by nobody', other.append('run_a', events.slice(0, 1)), ['run_owned'])
      await expectKept(other, 'run_a', [])
      await store.append('run_a', events.slice(0, 2), 'ann')
      expectEqual('the claim of its owner', await store.claim('run_a', 'ann', LONG_MS), true)
      await store.append('run_a', events.slice(2, 3), 'ann')
      expectEqual('the claim of another run', await other.claim('run_b', 'bob', LONG_MS), true)
      expectEqual('giving it back', await store.claim('run_a', 'ann', 0), true)
      await expectRefused('an append by who gave it back', store.append('run_a', events.slice(3, 4), 'ann'), [
        'run_owned',
      ])
      expectEqual('the claim of the next', await other.claim('run_a', 'bob', LONG_MS), true)
      await other.append('run_a', events.slice(3, 4), 'bob')
      expectEqual('giving it back', await other.claim('run_a', 'bob', 0), true)
      await store.append('run_a', events.slice(4))
      await expectKept(other, 'run_a', events)
    },
  },
  lapses: {
    says: 'A claim whose time is over can be taken over, and then its old owner is refused, also in the middle of the run.',
    async holds({ store, again }) {
      const events = story('run_a', 5)
      const other = await again()
      expectEqual('the first claim', await store.claim('run_a', 'ann', 20), true)
      await store.append('run_a', events.slice(0, 2), 'ann')
      await until('a claim whose time is over to be taken over', () => other.claim('run_a', 'bob', LONG_MS))
      await expectRefused('an append by the old owner', store.append('run_a', events.slice(2, 3), 'ann'), ['run_owned'])
      expectEqual('the claim of the old owner', await store.claim('run_a', 'ann', LONG_MS), false)
      await other.append('run_a', events.slice(2, 4), 'bob')
      await expectRefused('an append by the old owner', store.append('run_a', events.slice(4), 'ann'), ['run_owned'])
      await other.append('run_a', events.slice(4), 'bob')
      await expectKept(store, 'run_a', events)
      await expectKept(other, 'run_a', events)
    },
  },
  one_of_many: {
    says: 'Of many that claim a run at once, one gets it.',
    async holds({ store, again }) {
      const logs = [store, await again()]
      for (let round = 0; round < 5; round++) {
        const runId = `run_${round}`
        await store.append(runId, story(runId, 2))
        const claims = Array.from({ length: 16 }, async (_, index) => {
          return (await logs[index % 2]?.claim(runId, `owner_${index}`, LONG_MS)) === true
        })
        const won = (await Promise.all(claims)).flatMap((isOurs, index) => (isOurs ? [index] : []))
        expectEqual('the claims that were granted of 16', won.length, 1)
        const [winner = 0] = won
        await logs[winner % 2]?.append(runId, story(runId, 3).slice(2), `owner_${winner}`)
        await expectKept(store, runId, story(runId, 3))
      }
    },
  },
} as const satisfies Record<string, LogLaw>
