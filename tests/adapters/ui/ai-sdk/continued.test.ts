import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { uiMessageProjection } from 'thinharness/ui'
import type { AnyRunEvent, UiChunk, UiStreamOptions } from 'thinharness/ui'
import { ToldStream } from '#adapters/ui/client/run-transport.js'
import { GENERATED, generated } from '../support/generated.js'
import { plannedRuns } from '../support/plans.js'
import { record } from '../support/recorded-run.js'
import { chunksOf, DIALECTS, messageAfter, withChildrenLast } from './clients.js'

/** The events that a reader gets who comes when the first `at` have been emitted: stored ones, the open reply, then live ones. */
function eventsFrom(live: readonly AnyRunEvent[], at: number): readonly AnyRunEvent[] {
  const before = live.slice(0, at)
  const own = live[0]?.runId
  const turn = before.findLastIndex(
    ({ kind, runId }) =>
      runId === own &&
      ['model_request_started', 'model_message', 'deltas_withdrawn', 'run_completed', 'run_failed'].includes(kind),
  )
  const isOpen = ['model_request_started', 'deltas_withdrawn'].includes(before[turn]?.kind ?? '')
  const known = before.filter(
    ({ durable, runId, kind }, index) =>
      durable || (isOpen && index > turn && runId === own && kind.endsWith('_delta')),
  )
  return [...known, ...live.slice(at)]
}

/** The chunks of a connection that begins and breaks off at these places. */
function chunksBetween(
  live: readonly AnyRunEvent[],
  [from, to]: readonly [number, number],
  options: UiStreamOptions,
): readonly UiChunk[] {
  if (to >= live.length) return chunksOf(eventsFrom(live, from), options)
  const projection = uiMessageProjection(options)
  const events = eventsFrom(live, from)
  return events.slice(0, events.length - (live.length - to)).flatMap((event) => [...projection.next(event)])
}

const places = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 2, maxLength: 8 })

describe.each(DIALECTS)('AI SDK %s', (dialect) => {
  test.each(['status', 'message'] as const)(
    'UI-33 UI-31 lost connections end in the same message, no part told twice; child runs as %s',
    GENERATED,
    async (children) => {
      const readings = fc.asyncProperty(plannedRuns(), places, async (planned, lost) => {
        const { live, stored } = await record(planned)
        const told = new ToldStream({ hasReset: dialect === 7 })
        const handedOn: UiChunk[] = []
        const cuts = [
          0,
          ...lost.map((share) => Math.floor(share * live.length)).sort((one, other) => one - other),
          live.length,
        ]
        if (cuts.length % 2 === 1) cuts.splice(1, 1)
        for (let index = 0; index < cuts.length; index += 2) {
          told.begin()
          for (const chunk of chunksBetween(live, [cuts[index] ?? 0, cuts[index + 1] ?? 0], { dialect, children })) {
            const isEnd = ['finish', 'abort', 'error'].includes(chunk.type)
            handedOn.push(...((isEnd ? told.end(chunk) : told.next(chunk)) as UiChunk[]))
          }
        }
        const message = withChildrenLast(await messageAfter(dialect, handedOn))
        expect(handedOn.filter(({ type }) => type === 'start')).toHaveLength(1)
        const isTakenBack = handedOn.some(({ type }) => type === 'reset-step' || type === 'data-superseded')
        const texts = handedOn.flatMap((chunk) => (chunk.type === 'text-start' ? [chunk.id] : []))
        if (!isTakenBack) expect(new Set(texts).size).toBe(texts.length)
        if (dialect === 7 || !isTakenBack)
          expect(message).toEqual(withChildrenLast(await messageAfter(dialect, chunksOf(stored, { dialect }))))
      })
      await fc.assert(readings, generated(15))
    },
  )
})
