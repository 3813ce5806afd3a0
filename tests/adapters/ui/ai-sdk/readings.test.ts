import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { UIMessage } from 'ai7'
import { toUIMessages } from 'thinharness/ui'
import type { UiChunk } from 'thinharness/ui'
import { CORPUS, corpusRun } from '../support/corpus.js'
import { GENERATED, generated } from '../support/generated.js'
import { plannedRuns } from '../support/plans.js'
import { record } from '../support/recorded-run.js'
import { checkChunks, checkMessages, chunksOf, DIALECTS, messageAfter, withChildrenLast } from './clients.js'

describe.each(DIALECTS)('AI SDK %s', (dialect) => {
  const message = async (chunks: readonly UiChunk[], before?: UIMessage): Promise<UIMessage> =>
    withChildrenLast(await messageAfter(dialect, chunks, before))

  /** In dialect 6 the client adds the answers of people itself, so that a stream does not have them. */
  const withoutAnswers = (read: unknown): unknown => {
    const { parts, ...rest } = JSON.parse(JSON.stringify(read)) as UIMessage
    if (dialect !== 6) return { ...rest, parts }
    const waits = (part: object): boolean => 'state' in part && part.state === 'approval-requested'
    return { ...rest, parts: parts.map((part) => (waits(part) ? part : { ...part, approval: undefined })) }
  }

  test.each(CORPUS)('UI-07 UI-37 UI-38 chunks and messages of %s are valid and equal', async (title) => {
    const { stored } = await corpusRun(title)
    const chunks = chunksOf(stored, { dialect })
    await checkChunks(dialect, chunks)
    const whole = await messageAfter(dialect, chunks)
    const messages = toUIMessages(stored, { dialect })
    await checkMessages(dialect, messages)
    expect(withoutAnswers(messages.at(-1))).toEqual(withoutAnswers(whole))
  })

  test('XL-01 UI-07 UI-37 UI-38 all readings end in the same message', GENERATED, async () => {
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
      const messages = toUIMessages(run.stored, { dialect })
      await checkMessages(dialect, messages)
      expect(withoutAnswers(messages.at(-1))).toEqual(
        withoutAnswers(await messageAfter(dialect, chunksOf(run.stored, { dialect }))),
      )
    })
    await fc.assert(readings, generated(20))
  })

  test(
    'UI-25 XL-01 messages of child runs are gone at the end: every reading ends as without them',
    GENERATED,
    async () => {
      const readings = fc.asyncProperty(plannedRuns(), async (planned) => {
        const { live, stored } = await record(planned)
        for (const events of [live, stored]) {
          const chunks = chunksOf(events, { dialect, children: 'message' })
          await checkChunks(dialect, chunks)
          expect(await message(chunks)).toEqual(await message(chunksOf(events, { dialect })))
        }
        const [messages, plain] = [
          toUIMessages(stored, { dialect, children: 'message' }),
          toUIMessages(stored, { dialect }),
        ]
        expect(messages).toEqual(plain)
      })
      await fc.assert(readings, generated(10))
    },
  )
})
