import { describe, expect, test } from 'vitest'
import { defineExtension, memoryLog } from 'thinharness'
import type { DurableEvent, Extension, Harness } from 'thinharness'
import { clearResults, observe, summarise } from 'thinharness/context'
import { harnessOf, tool } from '../../harness/support.js'
import { eventsOfRun } from '../../support/collect.js'
import { lookingFor, randomOf, windowedModel } from './windowed-model.js'
import { times, timeLimit } from '../../support/length.js'

const HISTORIES = times(6, 300)

/** The view of each request, in bytes. */
function watching(views: string[]): Extension {
  return defineExtension({
    name: 'watching',
    wrapModelCall: (call, next) => {
      views.push(JSON.stringify(call.transcript))
      return next(call)
    },
  })
}

const POLICIES: Readonly<Record<string, (writes: boolean) => Extension>> = {
  clearResults: () => clearResults(),
  summarise: (writes) => summarise({ model: writerOf(writes), maxTokens: 300 }),
  observe: (writes) => observe({ model: writerOf(writes), maxTokens: 300 }),
}

/** A model that writes something else each time, or fails. */
function writerOf(writes: boolean) {
  return windowedModel({
    window: 1_000_000,
    reply: (request) => {
      if (!writes) throw new Error('Down.')
      return [{ type: 'text', text: request % 5 === 4 ? '' : `2026-11-23 20:00 · part ${request}: ${Math.random()}` }]
    },
  })
}

/** A random run under a policy, and how others continue it. */
class History {
  readonly #seed: number
  readonly #policy: (writes: boolean) => Extension
  readonly turns: number
  readonly #window: number

  constructor(seed: number, policy: (writes: boolean) => Extension) {
    const random = randomOf(seed)
    this.#seed = seed
    this.#policy = policy
    this.turns = 15 + Math.floor(random() * 30)
    this.#window = 4000 + Math.floor(random() * 12_000)
  }

  /** `answered`: requests that were answered before. */
  harness({ log = memoryLog(), answered = 0, writes = true } = {}): Harness {
    const random = randomOf(this.#seed + answered)
    const reply = lookingFor(this.turns, () => 1 + Math.floor(random() * 3))
    const model = windowedModel({ window: this.#window, reply: (request) => reply(request + answered) })
    const look = tool('look', async () => {
      // Lets the background continue.
      await new Promise((resolve) => setImmediate(resolve))
      return 'word '.repeat(Math.floor((random() ** 3 * this.#window) / 6))
    })
    const limits = { modelRequests: null, toolCalls: null }
    return harnessOf({ model, log, tools: [look], use: [this.#policy(writes)], limits })
  }
}

describe('views', () => {
  test.each(Object.entries(POLICIES))(
    'XC-54 recovery, forks and replay of random histories have the views of the run, byte for byte: %s',
    async (_name, policy) => {
      let changes = 0
      for (let seed = 1; seed <= HISTORIES; seed++) {
        const history = new History(seed, policy)
        const log = memoryLog()
        const sent: string[] = []
        await history.harness({ log }).run('Go.', { runId: 'run_1', use: [watching(sent)] })
        const events = await eventsOfRun(log, 'run_1')
        changes += events.filter(({ kind }) => kind === 'view_changed').length
        const replayed = await history.harness({ writes: false }).replay(events)
        expect(replayed.text, `seed ${seed}`).toBe('Done.')
        for (const cut of cutsOf(events, randomOf(seed))) {
          const before = events.slice(0, cut)
          const answered = before.filter(({ kind }) => kind === 'model_message').length
          const expected = sent[answered]
          const means = { answered, writes: false }
          const partial = memoryLog()
          await partial.append({ kind: 'run', id: 'run_1' }, before)
          const recovered: string[] = []
          await history.harness({ ...means, log: partial }).recover('run_1', { use: [watching(recovered)] })
          expect(recovered[0], `seed ${seed}, recovered after event ${cut}`).toBe(expected)
          if (isChangedNext(events, cut) || hasFoundNothing(events, cut)) continue
          const forked: string[] = []
          const next = { answered: answered + 1, writes: false }
          await history.harness(next).fork(events, { afterTurn: answered + 1 }, { use: [watching(forked)] })
          expect(forked[0], `seed ${seed}, forked after turn ${answered + 1}`).toBe(sent[answered + 1])
        }
      }
      expect(changes).toBeGreaterThan(HISTORIES)
    },
    timeLimit(240_000),
  )

  /** Moments right after a view was changed for a request. */
  function cutsOf(events: readonly DurableEvent[], random: () => number): readonly number[] {
    const all = events.flatMap(({ kind }, index) => (kind === 'view_changed' ? [index + 1] : []))
    return all.filter(() => random() < 0.5).slice(0, 4)
  }

  /** The policy could not shorten the view: a fork looks again at once, the run when it has grown. */
  function hasFoundNothing(events: readonly DurableEvent[], cut: number): boolean {
    const change = events[cut - 1]
    return change?.kind === 'view_changed' && change.changes.length === 0
  }

  /** The next request has another view, or there is none. */
  function isChangedNext(events: readonly DurableEvent[], cut: number): boolean {
    const rest = events.slice(cut)
    const next = rest.findIndex(({ kind }) => kind === 'model_request_started')
    const answer = rest.findIndex(({ kind }, index) => index > next && kind === 'model_message')
    return next < 0 || rest.slice(next, answer).some(({ kind }) => kind === 'view_changed')
  }
})
