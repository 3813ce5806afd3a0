import { describe, expect, test } from 'vitest'
import { HarnessError, textOf } from 'thinharness'
import type { Model } from 'thinharness'
import { fallback } from 'thinharness/models'
import { oneIn } from '../support/length.js'
import { CELLS, modelOf, NAMES, resultsOf, STAMP, turn, user, withProvider } from '../providers/every-model.js'

withProvider()

/** A model that is down when it is told so. */
function failable(model: Model): { readonly model: Model; readonly isDown: (down: boolean) => void } {
  let down = false
  const openSession: Model['openSession'] = (run) => {
    const session = model.openSession(run)
    return {
      turn: (...given) => {
        if (!down) return session.turn(...given)
        return Promise.reject(new HarnessError('provider_error', 'It is down.', { failure: 'server', retryable: true }))
      },
    }
  }
  const { provider, id, capabilities } = model
  return { model: { provider, id, capabilities, openSession }, isDown: (now) => (down = now) }
}

/** Without waits, and back to the first as soon as it is up. */
const AT_ONCE = { retries: 0, recoverMs: 0, breaker: { failures: 1000 } }

describe.each(NAMES)('a fallback from %s', (source) => {
  test.each(NAMES)('goes on with %s at any call of the batch, and returns with all its own data', async (target) => {
    const pair = NAMES.indexOf(source) * NAMES.length + NAMES.indexOf(target)
    for (const [index, { position, name, outcome }] of CELLS.entries()) {
      if ((pair + index) % oneIn(4) !== 0) continue
      const first = failable(modelOf(source))
      const model = fallback([first.model, modelOf(target)], AT_ONCE)
      const beginning = model.openSession()
      // A call without a result is in a history that somebody gives, and in no run.
      const session = outcome === null ? model.openSession() : beginning
      const prompt = user(pair % 2 === 0 ? 'Think.' : 'Think in secret.')
      const begun = { ...(await turn(beginning, [prompt])).entry, ...STAMP }
      first.isDown(true)
      const answered = [prompt, begun, ...resultsOf(begun, position, outcome), user('Go on.')]
      const other = { ...(await turn(session, answered)).entry, ...STAMP }
      expect(textOf(other.parts), `${name} at ${position}`).toBe('Heard: 6 messages.')
      first.isDown(false)
      const back = await turn(session, [...answered, other, user('And now?')])
      expect(textOf(back.entry.parts), `${name} at ${position}`).toBe('Heard: 8 messages.')
      expect([begun.provider, back.entry.provider]).toEqual([first.model.provider, first.model.provider])
    }
  })
})
