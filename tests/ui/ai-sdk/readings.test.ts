import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { UIMessage } from 'ai7'
import type { UiChunk } from '#ui/ai-sdk/chunk.js'
import { CORPUS, corpusRun } from '../support/corpus.js'
import { plannedRuns } from '../support/plans.js'
import { record } from '../support/recorded-run.js'
import { checkChunks, checkMessages, chunksOf, DIALECTS, messageAfter, withChildrenLast } from './clients.js'

describe.each(DIALECTS)('AI SDK %s', (dialect) => {
  const message = async (chunks: readonly UiChunk[], before?: UIMessage): Promise<UIMessage> =>
    withChildrenLast(await messageAfter(dialect, chunks, before))

  test.each(CORPUS)('UI-07 the chunks of %s are valid, and the message too', async (title) => {
    const { stored } = await corpusRun(title)
    const chunks = chunksOf(stored, { dialect })
    await checkChunks(dialect, chunks)
    const whole = await messageAfter(dialect, chunks)
    if (dialect !== 6) await checkMessages(dialect, [whole])
  })

  test('XL-01 UI-07 live, settled and stored readings end in the same message', { timeout: 120_000 }, async () => {
    const readings = fc.asyncProperty(plannedRuns(), async (planned) => {
      const run = await record(planned)
      const live = chunksOf(run.live, { dialect })
      await checkChunks(dialect, live)
      const whole = await message(chunksOf(run.stored, { dialect }))
      // Text that was withdrawn stays in dialects 5 and 6.
      const isWhole = live.every(({ type }) => type !== 'data-superseded')
      const read = await message(live)
      if (dialect === 7 || isWhole) expect(read).toEqual(whole)
      expect(await message(chunksOf(run.live, { dialect, deltas: 'settled' }))).toEqual(whole)
      if (dialect !== 6) await checkMessages(dialect, [whole])
    })
    await fc.assert(readings, {
      numRuns: Number(process.env['RUNS'] ?? 60),
      endOnFailure: process.env['NOSHRINK'] === '1',
    })
  })
})
