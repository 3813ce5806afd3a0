import { describe, expect, test } from 'vitest'
import { textOf } from 'thinharness'
import type { TranscriptRepair } from '#contracts/mend.js'
import { CELLS, modelOf, NAMES, replyOf, resultsOf, STAMP, turn, user, withProvider } from './every-model.js'

withProvider()

describe.each(NAMES)('a run started by %s', (source) => {
  test.each(NAMES)('RS-04 RS-07 a run continues with another model, at any call of the batch: %s', async (target) => {
    const prompt = (NAMES.indexOf(source) + NAMES.indexOf(target)) % 2 === 0 ? 'Think.' : 'Think in secret.'
    const begun = await replyOf(modelOf(source), prompt)
    const model = modelOf(target)
    for (const { position, name, outcome } of CELLS) {
      const repairs: TranscriptRepair[] = []
      const transcript = [...begun, ...resultsOf(begun[1], position, outcome), user('Go on.')]
      const asked = turn(model.openSession(), transcript, (repair) => void repairs.push(repair))
      const text = await asked.then(({ entry }) => textOf(entry.parts), String)
      // A prompt, a reply, three results, a prompt.
      expect(text, `${name} at ${position}`).toBe('Heard: 6 messages.')
      expect(repairs.map(({ problem }) => problem)).toEqual(outcome === null ? ['missing_result'] : [])
    }
  })

  test.each(NAMES)('it continues with %s and returns, with all its own data', async (target) => {
    const session = modelOf(source).openSession()
    const prompt = user('Think.')
    const first = { ...(await turn(session, [prompt])).entry, ...STAMP }
    const answered = [prompt, first, ...resultsOf(first, -1, null)]
    const second = { ...(await turn(modelOf(target).openSession(), answered)).entry, ...STAMP }
    const back = [...answered, second, user('And now?')]
    expect(textOf((await turn(session, back)).entry.parts)).toBe('Heard: 7 messages.')
  })
})
