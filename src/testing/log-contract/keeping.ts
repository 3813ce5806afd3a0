import type { DurableEvent } from '#core/state/events.js'
import { Events, runStory, threadStory } from './events.js'
import { expectSame } from '../expect.js'
import { RUN, collectAll, expectRejected, expectStored, runRef, threadRef } from './law.js'
import type { LogLaw } from './law.js'

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
      await expectRejected('a gap in a thread', store.append(threadRef('same'), threadStory(5).slice(4)), 'store_failure')
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
