import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createHandlers, toSse } from 'thinharness/ui'
import type { AnyRunEvent } from 'thinharness/ui'
import { FollowError, followRun, reduceChat } from 'thinharness/ui/client'
import type { ChatSnapshot, FollowedEvent } from 'thinharness/ui/client'
import { harnessOf } from '../../../harness/support.js'
import { CORPUS, corpusRun } from '../support/corpus.js'
import { CUTS, cutsOf, distinctCuts, placesOf, STEP, tallyOf } from '../support/cuts.js'
import { GENERATED, generated } from '../support/generated.js'
import { plannedRuns } from '../support/plans.js'
import { record } from '../support/recorded-run.js'
import type { RecordedRun } from '../support/recorded-run.js'
import { ScriptedModel } from 'thinharness/testing'

const URL_OF_RUN = 'http://localhost/api/runs/run/events'

type Readable = Pick<RecordedRun, 'runId' | 'log'>

/** The events of a run over HTTP: the first answer is `body`, if there is one; others come from the handler. */
async function read(
  { runId, log }: Readable,
  bodies: readonly Uint8Array[] = [],
): Promise<{ readonly snapshot: ChatSnapshot | undefined; readonly events: readonly FollowedEvent[] }> {
  const { events } = createHandlers({
    harness: harnessOf({ model: new ScriptedModel() }),
    log,
  })
  const left = [...bodies]
  const send = ((url: string, init?: RequestInit): Promise<Response> => {
    const body = left.shift()
    return body === undefined
      ? events(new Request(url, init))
      : Promise.resolve(new Response(body as Uint8Array<ArrayBuffer>))
  }) as typeof fetch
  let snapshot: ChatSnapshot | undefined
  const seen: FollowedEvent[] = []
  for await (const event of followRun(URL_OF_RUN.replace('/run/', `/${runId}/`), { fetch: send })) {
    seen.push(event)
    snapshot = reduceChat(snapshot, event)
  }
  return { snapshot, events: seen }
}

async function bytesOf(events: readonly AnyRunEvent[]): Promise<Uint8Array> {
  return new Uint8Array(await new Response(toSse(events)).arrayBuffer())
}

/** Progress is live only: what a reader has seen of it depends on when it came. */
function settled(snapshot: ChatSnapshot | undefined): unknown {
  return JSON.parse(JSON.stringify(snapshot, (name, value: unknown) => (name === 'progress' ? undefined : value)))
}

describe('native events', () => {
  const tally = tallyOf('native')

  /** Breaks the body off at each place. The rest comes from the log. */
  async function expectAllCuts(run: Readable, body: Uint8Array, cuts: readonly number[]): Promise<void> {
    const expected = settled((await read(run)).snapshot)
    tally.streams += 1
    tally.cuts += cuts.length
    for (const { cut } of await distinctCuts(body, cuts)) {
      tally.readings += 1
      expect(settled((await read(run, [body.slice(0, cut)])).snapshot), `after ${cut} bytes`).toEqual(expected)
    }
  }

  test.each(CORPUS)('SS-22 SS-27 %s is cut at every byte and read on', GENERATED, async (title) => {
    const run = await corpusRun(title)
    if (run.stored[0]?.kind !== 'run_started') return
    tally.corpusRuns += 1
    const body = await bytesOf(run.own)
    await expectAllCuts(run, body, placesOf(body, STEP))
  })

  test(
    'XL-01 SS-16 SS-22 SS-27 readings, live and from the log, cut anywhere, end as the log does',
    GENERATED,
    async () => {
      const readings = fc.asyncProperty(
        plannedRuns(),
        fc.array(fc.nat(), { minLength: CUTS, maxLength: CUTS }),
        async (planned, cuts) => {
          const run = await record(planned)
          tally.generatedRuns += 1
          for (const events of [run.live.filter(({ runId }) => runId === run.runId), run.own]) {
            const body = await bytesOf(events)
            await expectAllCuts(run, body, [...cutsOf(body, cuts), body.length])
          }
        },
      )
      await fc.assert(readings, generated(15))
    },
  )

  test('XL-11 XL-15 private data of the server is not in the stream', GENERATED, async () => {
    const readings = fc.asyncProperty(plannedRuns(), async (planned) => {
      const run = await record(planned)
      const text = new TextDecoder().decode(await bytesOf(run.live))
      for (const name of ['"root"', '"rules"', '"native"', '"traceparent"', '"config"', '"result"'])
        expect(text).not.toContain(`${name}:`)
      const failed = run.own.find(({ kind }) => kind === 'run_failed')
      // The sentence of a cancelled run is its message.
      if (failed?.kind === 'run_failed' && failed.code !== 'cancelled') expect(text).not.toContain(failed.message)
    })
    await fc.assert(readings, generated(8))
  })

  test('SS-14 SS-25 a cursor that is none is refused, and the client does not ask again', async () => {
    const run = await corpusRun('v3/plain')
    const { events } = createHandlers({
      harness: harnessOf({ model: new ScriptedModel() }),
      log: run.log,
      authorize: () => ({ resourceId: 'a' }),
    })
    let asked = 0
    const send = ((url: string, init?: RequestInit) => {
      asked += 1
      return events(new Request(url, init))
    }) as typeof fetch
    const follow = async (): Promise<void> => {
      for await (const _ of followRun(URL_OF_RUN.replace('/run/', `/${run.runId}/`), { after: 'x', fetch: send }))
        return
    }
    await expect(follow()).rejects.toThrow(FollowError)
    await expect(follow()).rejects.toThrow('Expected the cursor to be a whole number from 0 up')
    expect(asked).toBe(2)
  })
})
