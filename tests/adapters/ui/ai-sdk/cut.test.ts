import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { UIMessage } from 'ai7'
import { encodeUiChunk } from 'thinharness/ui'
import type { AnyRunEvent, Dialect, UiChunk } from 'thinharness/ui'
import { ToldStream } from '#adapters/ui/client/run-transport.js'
import { CORPUS, corpusRun } from '../support/corpus.js'
import { beginnings, CUTS, cutsOf, placesOf, STEP, tallyOf } from '../support/cuts.js'
import type { Tally } from '../support/cuts.js'
import { GENERATED, generated } from '../support/generated.js'
import { plannedRuns } from '../support/plans.js'
import { record } from '../support/recorded-run.js'
import { chunksOf, DIALECTS, messageAfter, withChildrenLast } from './clients.js'

const ENDS = ['finish', 'abort', 'error']

/** The message of a page whose first connection broke off after some chunks, and whose second one told all. */
async function resumed(
  dialect: Dialect,
  first: readonly UiChunk[],
  second: readonly UiChunk[],
): Promise<{ readonly message: UIMessage; readonly isTakenBack: boolean }> {
  const told = new ToldStream({ hasReset: dialect === 7 })
  const handOn = (chunks: readonly UiChunk[]): UiChunk[] => {
    told.begin()
    return chunks.flatMap((chunk) => (ENDS.includes(chunk.type) ? told.end(chunk) : told.next(chunk)) as UiChunk[])
  }
  // A connection that ended is not opened again.
  const whole = first.some(({ type }) => ENDS.includes(type))
  const chunks = [
    ...handOn(first.filter(({ type }) => whole || !ENDS.includes(type))),
    ...(whole ? [] : handOn(second)),
  ]
  const isTakenBack = chunks.some(({ type }) => type === 'data-superseded')
  return { message: withChildrenLast(await messageAfter(dialect, chunks)), isTakenBack }
}

async function expectAllCuts(
  dialect: Dialect,
  {
    body,
    stored,
    tally,
  }: { readonly body: readonly UiChunk[]; readonly stored: readonly AnyRunEvent[]; readonly tally: Tally },
  placesIn: (bytes: Uint8Array) => readonly number[],
): Promise<void> {
  const bytes = new TextEncoder().encode(body.map(encodeUiChunk).join(''))
  const second = chunksOf(stored, { dialect })
  const expected = withChildrenLast(await messageAfter(dialect, second))
  const ends = body.findIndex(({ type }) => ENDS.includes(type))
  const cuts = placesIn(bytes)
  tally.streams += 1
  tally.cuts += cuts.length
  for (const first of await beginnings<UiChunk>(bytes, cuts)) {
    if (first.length > ends && first.length < body.length) continue
    tally.readings += 1
    const { message, isTakenBack } = await resumed(dialect, first, second)
    if (!isTakenBack) expect(message, `after ${first.length} chunks`).toEqual(expected)
  }
}

describe.each(DIALECTS)('AI SDK %s', (dialect) => {
  const tally = tallyOf(`AI SDK ${dialect}`)

  test.each(CORPUS)('UI-30 UI-33 %s is cut at every byte and read on', GENERATED, async (title) => {
    const { stored } = await corpusRun(title)
    tally.corpusRuns += 1
    await expectAllCuts(dialect, { body: chunksOf(stored, { dialect }), stored, tally }, (bytes) =>
      placesOf(bytes, STEP),
    )
  })

  test(
    'XL-01 UI-30 UI-33 streams, live and from the log, cut at random bytes, end as the log does',
    GENERATED,
    async () => {
      const cuts = fc.array(fc.nat(), { minLength: CUTS, maxLength: CUTS })
      const readings = fc.asyncProperty(plannedRuns(), cuts, async (planned, places) => {
        const { live, stored } = await record(planned)
        tally.generatedRuns += 1
        for (const events of [live, stored]) {
          const body = chunksOf(events, { dialect })
          await expectAllCuts(dialect, { body, stored, tally }, (bytes) => cutsOf(bytes, places))
        }
      })
      await fc.assert(readings, generated(8))
    },
  )
})
