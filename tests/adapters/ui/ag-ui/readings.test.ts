import type { Message } from '@ag-ui/client'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { toAgUiMessages } from '#adapters/ui/ag-ui/ag-ui-projection.js'
import { encodeAgUi } from '#adapters/ui/ag-ui/event.js'
import type { AgUiEvent } from '#adapters/ui/ag-ui/event.js'
import type { AnyRunEvent } from 'thinharness/ui'
import { CORPUS, corpusRun } from '../support/corpus.js'
import { beginnings, CUTS, cutsOf, placesOf, STEP, tallyOf } from '../support/cuts.js'
import { GENERATED, generated } from '../support/generated.js'
import { plannedRuns } from '../support/plans.js'
import { record } from '../support/recorded-run.js'
import { byOwner, Client, eventsOf } from './client.js'
import type { ClientView } from './client.js'

const TALLY = tallyOf('AG-UI')

const IDS = { threadId: 'chat_1', runId: 'stretch_1' }

/** The message that a client has sent; none for a run that continues a stored state. */
function promptOf(events: readonly AnyRunEvent[]): readonly Message[] {
  const [first] = events
  return first?.kind === 'run_started' && first.prompt !== null ? ([...toAgUiMessages([first])] as Message[]) : []
}

async function viewAfter(
  events: readonly AnyRunEvent[],
  ...streams: readonly (readonly AgUiEvent[])[]
): Promise<ClientView> {
  const client = new Client(promptOf(events))
  for (const stream of streams) await client.read(stream)
  return client.view
}

test.each(CORPUS)('AG-07 AG-08 the official client takes the stream of %s, and has its messages', async (title) => {
  const { stored } = await corpusRun(title)
  const view = await viewAfter(stored, eventsOf(stored, IDS))
  expect(view.messages).toEqual(byOwner(toAgUiMessages(stored)))
})

test('XL-01 AG-07 AG-08 AG-11 AG-12 AG-21 all readings end in the same messages', GENERATED, async () => {
  const readings = fc.asyncProperty(plannedRuns(), fc.nat(), fc.nat(), async (planned, place, cut) => {
    const run = await record(planned)
    const { live, stored, own } = run
    const whole = await viewAfter(stored, eventsOf(stored, IDS))
    expect(whole.messages).toEqual(byOwner(toAgUiMessages(stored)))
    expect(await viewAfter(stored, eventsOf(live, IDS))).toEqual(whole)
    expect(await viewAfter(stored, eventsOf(live, { ...IDS, deltas: 'settled' }))).toEqual(whole)
    // One stream for each stretch.
    const starts = [0, ...own.filter(({ kind }) => kind === 'run_completed').map(({ seq }) => seq)]
    const streams = run.stretches.map((_, index) => {
      const events = run.stretches.slice(0, index + 1).flat()
      return eventsOf(events, { ...IDS, after: starts[index] })
    })
    expect(await viewAfter(stored, ...streams)).toEqual(whole)
    // A stream that breaks off, and another after it.
    const told = eventsOf(live, IDS)
    const client = new Client(promptOf(stored))
    await client.read(told.slice(0, 1 + (cut % told.length)))
    const after = 1 + (place % (own.at(-1)?.seq ?? 1))
    await client.read(eventsOf(live, { ...IDS, after, held: client.messages }))
    expect(client.view).toEqual(whole)
  })
  await fc.assert(readings, generated(20))
})

/** A stream that breaks off after some events, and another after it, from the log: as the whole stream, wherever it was cut. */
async function expectAllCuts(
  told: readonly AgUiEvent[],
  stored: readonly AnyRunEvent[],
  placesIn: (bytes: Uint8Array) => readonly number[],
): Promise<void> {
  const whole = await viewAfter(stored, eventsOf(stored, IDS))
  const bytes = new TextEncoder().encode(told.map(encodeAgUi).join(''))
  const cuts = placesIn(bytes)
  const firsts = await beginnings<AgUiEvent>(bytes, cuts)
  TALLY.streams += 1
  TALLY.cuts += cuts.length
  TALLY.readings += firsts.length
  for (const first of firsts) {
    const client = new Client(promptOf(stored))
    if (first.length > 0) await client.read(first)
    const after = Math.max(
      1,
      Math.floor((stored.filter(({ parentRunId }) => parentRunId === null).length * first.length) / told.length),
    )
    await client.read(eventsOf(stored, { ...IDS, after, held: client.messages }))
    expect(client.view, `after ${first.length} events`).toEqual(whole)
  }
}

test.each(CORPUS)('AG-21 %s is cut at every byte and read on', GENERATED, async (title) => {
  const { stored } = await corpusRun(title)
  TALLY.corpusRuns += 1
  await expectAllCuts(eventsOf(stored, IDS), stored, (bytes) => placesOf(bytes, STEP))
})

test('XL-01 AG-21 streams, live and from the log, cut at random bytes, end as the log does', GENERATED, async () => {
  const cuts = fc.array(fc.nat(), { minLength: CUTS, maxLength: CUTS })
  const readings = fc.asyncProperty(plannedRuns(), cuts, async (planned, places) => {
    const { live, stored } = await record(planned)
    TALLY.generatedRuns += 1
    for (const events of [live, stored])
      await expectAllCuts(eventsOf(events, IDS), stored, (bytes) => cutsOf(bytes, places))
  })
  await fc.assert(readings, generated(8))
})
