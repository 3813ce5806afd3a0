import type { DurableEvent } from '../../index.js'
import { Events } from './events.js'
import { expectEqual, expectKept, expectRefused } from './law.js'
import type { LogLaw } from './law.js'

/** Laws of what is kept. */
export const keepingLaws = {
  keeps_in_order: {
    says: 'What was appended is read in order, by run, from any number on; of an unknown run there is nothing.',
    async holds({ store, again }) {
      const [events, other] = [story('run_a', 5), story('run_b', 2)]
      await store.append('run_a', events.slice(0, 1))
      await store.append('run_b', other)
      await store.append('run_a', events.slice(1, 3))
      await store.append('run_a', [])
      await store.append('run_a', events.slice(3))
      for (const log of [store, await again()]) {
        await expectKept(log, 'run_a', events)
        await expectKept(log, 'run_a', events.slice(2), 3)
        await expectKept(log, 'run_a', [], 6)
        await expectKept(log, 'run_b', other)
        await expectKept(log, 'run_unknown', [])
      }
    },
  },
  keeps_texts: {
    says: 'Whatever JSON can say is kept as it is, long or strange, under whatever id.',
    async holds({ store, again }) {
      const strange = ['', '\u0000\u001f', '"\\\n\r\u2028', 'Schön 🎈', '\ud800', '%s $1 \'"; --', 'x'.repeat(300_000)]
      const ids = ['run_1', 'RUN_1', 'Run_1', 'a.b', 'a:b', 'a-b', '..', 'con', 'x'.repeat(128), 'X'.repeat(128)]
      for (const runId of ids) await store.append(runId, story(runId, 1))
      const events = new Events('run_texts')
      for (const text of strange) events.note(text)
      await store.append('run_texts', events.made)
      const log = await again()
      await expectKept(log, 'run_texts', events.made)
      for (const runId of ids) await expectKept(log, runId, story(runId, 1))
    },
  },
  keeps_many: {
    says: 'A run of a thousand events is read whole.',
    async holds({ store }) {
      const events = story('run_a', 1000)
      for (let start = 0; start < events.length; start += 50) {
        await store.append('run_a', events.slice(start, start + 50))
      }
      await expectKept(store, 'run_a', events)
      await expectKept(store, 'run_a', events.slice(499), 500)
    },
  },
  refuses_gaps: {
    says: 'Events that do not follow are refused, and nothing of them is kept.',
    async holds({ store }) {
      const events = story('run_a', 6)
      const some = (...numbers: readonly number[]): DurableEvent[] =>
        events.filter((event) => numbers.includes(event.seq))
      await store.append('run_a', some(1, 2))
      await expectRefused('an append that leaves one out', store.append('run_a', some(4)), ['store_failure'])
      await expectRefused('an append with a gap in it', store.append('run_a', some(3, 5)), ['store_failure'])
      await expectRefused('an append once more', store.append('run_a', some(2)), ['store_failure'])
      await expectRefused('a second beginning', store.append('run_a', some(1)), ['run_exists'])
      await expectKept(store, 'run_a', some(1, 2))
      await store.append('run_a', some(3, 4))
      await expectKept(store, 'run_a', some(1, 2, 3, 4))
    },
  },
  goes_on_from_anywhere: {
    says: 'A log takes a run whose beginning it has not seen, from where it is resumed.',
    async holds({ store }) {
      const events = story('run_a', 8).slice(4)
      await store.append('run_a', events.slice(0, 2))
      await store.append('run_a', events.slice(2))
      await expectKept(store, 'run_a', events)
    },
  },
  keeps_what_it_said: {
    says: 'What was reported as kept is there, however often the connection is lost; what was refused is not.',
    async holds({ store, again, kill }) {
      const events = new Events('run_a')
      const first = events.made.slice()
      await store.append('run_a', first)
      for (let round = 0; round < 12; round++) {
        const next = events.note(`Round ${round}.`)
        const appending = store.append('run_a', [next])
        const [kept] = await Promise.allSettled([appending, kill?.()])
        if (kept.status === 'rejected') events.made.pop()
        await expectKept(await again(), 'run_a', events.made)
      }
    },
  },
  one_of_two_writers: {
    says: 'Of two that append the same event at once, each through its own opening of the store, one is refused.',
    async holds({ store, again }) {
      const other = await again()
      const events = new Events('run_a')
      await store.append('run_a', events.made.slice())
      for (let round = 0; round < 10; round++) {
        const next = [store, other].map((_, index) => ({ ...events.note(`By ${index}.`), seq: round + 2 }))
        const outcomes = await Promise.allSettled(
          [store, other].map((log, index) => log.append('run_a', [next[index] as DurableEvent])),
        )
        const kept = next.filter((_, index) => outcomes[index]?.status === 'fulfilled')
        expectEqual(`appends kept of two in round ${round}`, kept.length, 1)
        await expectKept(other, 'run_a', kept, round + 2)
      }
    },
  },
} as const satisfies Record<string, LogLaw>

/** A run of so many events that has not ended. */
export function story(runId: string, length: number): DurableEvent[] {
  const events = new Events(runId)
  while (events.seq < length) events.note(`Event ${events.seq + 1}.`)
  return events.made
}
