import { expect, test } from 'vitest'
import { Harness } from 'thinharness'
import type { Model } from 'thinharness'
import { cached, fallback, limited, memoryCache, route } from 'thinharness/models'
import { ScriptedModel } from 'thinharness/testing'

/** A model whose sessions hold a connection until they are closed. */
function holding(): { readonly model: Model; readonly held: () => number } {
  const scripted = new ScriptedModel().always('Done.')
  let held = 0
  const openSession: Model['openSession'] = () => {
    const session = scripted.openSession()
    held += 1
    return { turn: (...given) => session.turn(...given), close: () => void (held -= 1) }
  }
  const { provider, id, capabilities } = scripted
  return { model: { provider, id, capabilities, openSession }, held: () => held }
}

test.each([
  ['itself', (model: Model) => model],
  ['a fallback', (model: Model) => fallback([model])],
  ['a route', (model: Model) => route({ main: model })],
  ['a cache', (model: Model) => cached(model, { store: memoryCache() })],
  ['a limit', (model: Model) => limited(model, { concurrency: 1 })],
  [
    'all of them',
    (model: Model) => fallback([cached(limited(route({ main: model }), { concurrency: 1 }), { store: memoryCache() })]),
  ],
])('what a session holds is given back at the end of its run: %s', async (_name, around) => {
  const { model, held } = holding()
  await using harness = new Harness({ model: around(model) })
  await harness.run('Go.')
  await harness.run('Go on.')
  expect(held()).toBe(0)
})
