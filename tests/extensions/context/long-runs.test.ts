import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Extension, Model } from 'thinharness'
import { clearResults, observe, summarise } from 'thinharness/context'
import { anthropic, openai, openaiChat } from 'thinharness/providers'
import type { ScriptedProvider } from 'thinharness/testing'
import { ask } from '../../../e2e/bench/long/asking.js'
import { NAMES, summaryOf } from '../../../e2e/bench/long/facts.js'
import { exploringProvider, WRITER } from '../../../e2e/bench/long/explorer.js'
import { travel } from '../../../e2e/bench/long/journey.js'
import { plantTree } from '../../../e2e/bench/long/trees.js'
import { temporaryFolder } from '../../support/folder.js'
import { timeLimit, times } from '../../support/length.js'

const turns = times(100, 200)
const window = 25_000

type Urls = ScriptedProvider['url']

/** The short form of `npm run bench:long`. */
describe('long runs over the sources of a package', () => {
  let provider: ScriptedProvider
  let tree: Awaited<ReturnType<typeof plantTree>>

  beforeAll(async () => {
    tree = await plantTree(temporaryFolder(), ['@types/node'])
    provider = await exploringProvider({ tree, window, turns })
  })
  afterAll(() => provider.close())

  test.each<[string, (urls: Urls, id: string) => Model, (writer: Model) => Extension]>([
    [
      'clearResults, Messages',
      (urls, id) => anthropic(id, { apiKey: 'k', baseUrl: urls.messages, capabilities: { contextTokens: window } }),
      () => clearResults(),
    ],
    [
      'summarise, Responses',
      (urls, id) => openai(id, { apiKey: 'k', baseUrl: urls.responses, capabilities: { contextTokens: window } }),
      (model) => summarise({ model, maxTokens: 500 }),
    ],
    [
      'observe, chat completions',
      (urls, id) => openaiChat(id, { apiKey: 'k', baseUrl: urls.chat, capabilities: { contextTokens: window } }),
      (model) => observe({ model, maxTokens: 500 }),
    ],
  ])(
    'XC-50 a strict provider that enforces its window refuses no request, the cache holds, and every original can be read: %s',
    async (name, modelWith, policyWith) => {
      const policy = policyWith(modelWith(provider.url, WRITER))
      const journey = await travel({ tree, policy, model: modelWith(provider.url, name), runId: 'run_1' })
      expect(journey.requests).toBe(turns + 1)
      expect(journey.changes).toBeGreaterThan(2)
      expect(journey.refused).toBe(0)
      expect(journey.longest).toBeLessThan(window)
      expect(journey.cached).toBeGreaterThan(0.9)
      expect(journey.lost).toEqual([])
    },
    timeLimit(240_000),
  )

  test.each<[string, (writer: Model) => Extension, (text: string) => string, boolean]>([
    ['cleared results', () => clearResults(), String, true],
    ['a summary', (model) => summarise({ model, maxTokens: 1000 }), summaryOf, false],
    ['a summary without them', (model) => summarise({ model, maxTokens: 1000 }), () => 'Many files were read.', true],
    ['a log', (model) => observe({ model, maxTokens: 1000 }), summaryOf, false],
  ])(
    'XC-51 facts of turn 3 are answered much later, by the view or by `recall`: with %s',
    async (title, policy, write, needsRecall) => {
      const asked = await ask({ tree, window, turns: [40, times(80, 120)] }, { title, policy, write })
      expect(asked.right).toEqual([NAMES.length, NAMES.length])
      expect(asked.recalls > 0).toBe(needsRecall)
      expect(asked.meter.longest).toBeLessThan(window)
    },
    timeLimit(240_000),
  )
})
