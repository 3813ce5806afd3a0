import fc from 'fast-check'
import { expect, test } from 'vitest'
import { memoryLog } from 'thinharness'
import type { AnyRunEvent } from 'thinharness/ui'
import { ScriptedModel } from 'thinharness/testing'
import { createHandlers } from 'thinharness/ui'
import { encodeResponse } from '#adapters/ui/responses/event.js'
import type { OpenResponse, ResponseEvent } from '#adapters/ui/responses/event.js'
import { harnessOf, told } from '../../../harness/support.js'
import { CORPUS, corpusRun } from '../support/corpus.js'
import { beginnings, CUTS, cutsOf, placesOf, STEP, tallyOf } from '../support/cuts.js'
import { GENERATED, generated } from '../support/generated.js'
import { plannedRuns } from '../support/plans.js'
import { record } from '../support/recorded-run.js'
import type { RecordedRun } from '../support/recorded-run.js'
import { openAiOf, readBy, readingOf, typesOf } from './client.js'
import type { Reading } from './client.js'

const TALLY = tallyOf('Open Responses')

const copyOf = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T

/** Members that the client adds: it parses structured answers and arguments. */
const isOfClient = (name: string): boolean => ['parsed', 'parsed_arguments', 'output_parsed'].includes(name)

/** What the official client has after a reading: the response of the last event. */
async function expectClient({ events, response }: Reading): Promise<void> {
  const { output_text: _text, ...read } = (await readBy(events)) as unknown as Record<string, unknown>
  const plain = JSON.stringify(read, (name, value: unknown) => (isOfClient(name) ? undefined : value))
  expect(JSON.parse(plain)).toEqual(copyOf(response))
}

/** The stretches of a run, from its first to the one that ended it. */
function stretchesOf(events: readonly AnyRunEvent[]): readonly OpenResponse[] {
  const ends = events.filter(({ kind, parentRunId }) => parentRunId === null && /^run_(completed|failed)$/.test(kind))
  return Array.from({ length: Math.max(ends.length, 1) }, (_, n) => readingOf(events, { stretch: n + 1 }).response)
}

/** The official client reads a response from the handlers: the first body breaks off, if there is one. */
async function retrieved({ log }: Pick<RecordedRun, 'log'>, id: string): Promise<unknown> {
  const { responses } = createHandlers({ harness: harnessOf({ model: new ScriptedModel() }), log })
  const { output_text: _text, ...read } = await openAiOf(responses)
    .responses.stream({ response_id: id })
    .finalResponse()
  return JSON.parse(JSON.stringify(read, (name, value: unknown) => (isOfClient(name) ? undefined : value)))
}

test.each(CORPUS)(
  'OR-01 OR-05 the official client takes the stream of a stored run, and has its response: %s',
  async (title) => {
    const run = await corpusRun(title)
    if (run.stored[0]?.kind !== 'run_started') return
    for (const [index, response] of stretchesOf(run.stored).entries()) {
      await expectClient(readingOf(run.stored, { stretch: index + 1 }))
      expect(await retrieved(run, response.id)).toEqual(copyOf(response))
    }
  },
)

test('XL-01 XL-05 OR-01 OR-05 all readings of a stretch end in the same response', GENERATED, async () => {
  const readings = fc.asyncProperty(plannedRuns(), async (planned) => {
    const { live, stored, stretches, own } = await record(planned)
    const whole = stretchesOf(stored)
    const starts = [0, ...own.filter(({ kind }) => kind === 'run_completed').map(({ seq }) => seq)]
    for (const [index] of stretches.entries()) {
      const stretch = index + 1
      // A stretch that was cancelled while it waited ends without a stretch of its own in the log.
      if (whole[index] === undefined) continue
      const seen = stretches.slice(0, stretch).flat()
      const read = [
        readingOf(stored, { stretch }),
        readingOf(live, { stretch }),
        readingOf(live, { stretch, deltas: 'settled' }),
        readingOf(seen, { after: starts[index] }),
      ]
      for (const reading of read) {
        expect(reading.response).toEqual(whole[index])
        const ends = reading.events.filter(({ type }) => /^response\.(completed|incomplete|failed)$/.test(type))
        expect(ends).toEqual([reading.events.at(-1)])
        await expectClient(reading)
      }
    }
  })
  await fc.assert(readings, generated(15))
})

/** The body breaks off: the client reads the response again, from its beginning, and ends with the same. */
async function expectAllCuts(
  run: Pick<RecordedRun, 'log' | 'stored'>,
  told: readonly ResponseEvent[],
  placesIn: (bytes: Uint8Array) => readonly number[],
): Promise<void> {
  const [whole] = stretchesOf(run.stored)
  const bytes = new TextEncoder().encode(told.map(encodeResponse).join(''))
  const cuts = placesIn(bytes)
  const firsts = await beginnings<ResponseEvent>(bytes, cuts)
  TALLY.streams += 1
  TALLY.cuts += cuts.length
  TALLY.readings += firsts.length
  for (const first of firsts) {
    const ended = first.at(-1)
    const response =
      ended?.type === told.at(-1)?.type && ended !== undefined && 'response' in ended ? ended.response : null
    const id = first.flatMap((event) => ('response' in event ? [event.response.id] : [])).at(0) ?? whole?.id ?? ''
    expect(response ?? (await retrieved(run, id)), `after ${first.length} events`).toEqual(copyOf(whole))
  }
}

test.each(CORPUS)('XL-01 OR-05 a stored run is cut at every byte and read again: %s', GENERATED, async (title) => {
  const run = await corpusRun(title)
  if (run.stored[0]?.kind !== 'run_started') return
  TALLY.corpusRuns += 1
  await expectAllCuts(run, readingOf(run.stored).events, (bytes) => placesOf(bytes, STEP))
})

test('XL-01 OR-05 streams, live and from the log, cut at random bytes, end as the log does', GENERATED, async () => {
  const cuts = fc.array(fc.nat(), { minLength: CUTS, maxLength: CUTS })
  const readings = fc.asyncProperty(plannedRuns(), cuts, async (planned, places) => {
    const run = await record(planned)
    TALLY.generatedRuns += 1
    for (const events of [run.live, run.stored])
      await expectAllCuts(run, readingOf(events).events, (bytes) => cutsOf(bytes, places))
  })
  await fc.assert(readings, generated(8))
})

test('XL-07 XL-08 OR-01 deltas that do not count are an incomplete item of the stream, and not in the response', async () => {
  const harness = harnessOf({ model: new ScriptedModel().says('The right answer.'), log: memoryLog() })
  const { events } = await told(harness.stream('Hi.', { runId: 'run_1' }))
  const wrong = events.map((event): AnyRunEvent =>
    event.kind === 'text_delta' ? { ...event, text: 'A wrong ' } : event,
  )
  const reading = readingOf(wrong)
  expect(reading.response.output).toMatchObject([{ content: [{ text: 'The right answer.' }] }])
  expect(JSON.stringify(reading.response)).not.toContain('wrong')
  const ended = reading.events.filter(({ type }) => type === 'response.output_item.done')
  expect(ended).toMatchObject([{ output_index: 0, item: { status: 'incomplete' } }, { output_index: 1 }])
  await expectClient(reading)
  const [first, second] = reading.events.filter(({ type }) => type === 'response.output_text.delta')
  expect(typesOf(reading.events).startsWith('created in_progress')).toBe(true)
  expect([first, second]).toMatchObject([{ item_id: 'msg_run_1.2.t0' }, {}])
})
