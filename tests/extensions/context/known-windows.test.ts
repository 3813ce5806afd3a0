import { expect, test } from 'vitest'
import { defineExtension } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf, tool } from '../../harness/support.js'

test.each([
  ['anthropic', 'claude-haiku-4-5', {}, 200_000],
  ['openai', 'gpt-4o', {}, 128_000],
  ['anthropic', 'claude-haiku-4-5', { contextTokens: 1000 }, 1000],
  ['openai-compatible', 'gpt-4o', {}, null],
  ['anthropic', 'claude-that-nobody-knows', {}, null],
])(
  'XC-56 the window of a model is that of its capabilities, else that of the table of prices: %s:%s, %j',
  async (provider, id, capabilities, expected) => {
    const windows: (number | null)[] = []
    const watching = defineExtension({
      name: 'watching',
      view: ({ window }) => {
        windows.push(window)
        return null
      },
    })
    const look = tool('look')
    using model = new ScriptedModel({ provider, id, capabilities }).calls('look').says('Done.')
    const harness = harnessOf({ model, tools: [look], use: [watching] })
    // The price is looked up while the first run works.
    await harness.run('Go.')
    using again = new ScriptedModel({ provider, id, capabilities }).says('Done.')
    await harnessOf({ model: again, use: [watching] }).run('Go.')
    expect(windows.at(-1)).toBe(expected)
  },
)
