import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { Harness, memoryLog } from 'thinharness'
import type { Model } from 'thinharness'
import { anthropic, openai, openaiCompatible } from 'thinharness/providers'
import { scriptedProvider } from 'thinharness/testing'

const APIS: readonly (readonly [string, (baseUrl: string) => Model, 'responses' | 'chat' | 'messages'])[] = [
  ['Responses', (baseUrl) => openai('gpt-5.5', { apiKey: 'any', baseUrl }), 'responses'],
  ['chat completions', (baseUrl) => openaiCompatible('local', { baseUrl }), 'chat'],
  ['Messages', (baseUrl) => anthropic('claude-sonnet-5', { apiKey: 'any', baseUrl }), 'messages'],
]

const TURNS = 8

/** Holds a conversation of runs; how often its third prompt was made JSON in the last run. */
async function converse(makeModel: () => Model): Promise<number> {
  const log = memoryLog()
  let encoded = 0
  for (let turn = 0; turn < TURNS; turn += 1) {
    const harness = new Harness({ model: makeModel(), builtinTools: [], log })
    const { stringify } = JSON
    encoded = 0
    const spy = vi.spyOn(JSON, 'stringify').mockImplementation((...given: Parameters<typeof stringify>) => {
      const text = stringify(...given)
      if (text.includes('Question 2.')) encoded += 1
      return text
    })
    const history = turn === 0 ? null : { runId: `run_${turn - 1}` }
    await harness.run(`Question ${turn}.`, { runId: `run_${turn}`, history })
    spy.mockRestore()
  }
  return encoded
}

describe.each(APIS)('a conversation of many runs, over %s', (_name, make, api) => {
  test('is encoded once by a model, and its requests have the same bytes as if each run encoded all of it', async () => {
    await using provider = await scriptedProvider()
    for (let turn = 0; turn < 2 * TURNS; turn += 1) provider.says(`Answer ${turn % TURNS}.`)
    const models: Model[] = []
    onTestFinished(async () => {
      for (const model of models) await model.close?.()
    })
    const made = (): Model => {
      const model = make(provider.url[api])
      models.push(model)
      return model
    }
    const one = made()
    const [shared, separate] = [await converse(() => one), await converse(made)]
    const bodies = provider.requests.map(({ body }) => JSON.stringify(body))
    expect(bodies.slice(0, TURNS)).toEqual(bodies.slice(TURNS))
    // The scripted provider encodes too.
    expect(separate - shared).toBe(1)
  })
})
