import { describe, expect, test } from 'vitest'
import { defineExtension } from 'thinharness'
import type { Model, TranscriptEntry } from 'thinharness'
import { clearResults, summarise } from 'thinharness/context'
import { anthropic, openai, openaiChat, openrouter } from 'thinharness/providers'
import { harnessOf, tool } from '../../harness/support.js'
import { requestProblems } from '../../support/request-validator.js'
import { lookingFor, randomOf, windowedModel } from './windowed-model.js'

type Fetch = typeof globalThis.fetch

const WIRES: readonly (readonly [string, (fetch: Fetch) => Model])[] = [
  ['anthropic-messages', (fetch) => anthropic('claude-sonnet-5', { apiKey: 'k', fetch })],
  ['openai-responses', (fetch) => openai('gpt-5.5', { apiKey: 'k', fetch })],
  ['openai-chat', (fetch) => openaiChat('gpt-4.1', { apiKey: 'k', fetch })],
  ['openai-chat', (fetch) => openrouter('some/model', { apiKey: 'k', fetch })],
]
const OF_VENDORS = ['cache_control', 'reasoning', 'provider', 'transforms', 'models', 'usage', 'plugins', 'thinking']

describe('the views of random histories', () => {
  test.each(WIRES)('XC-37 are valid requests, and no adapter has to repair them: %s', async (api, modelWith) => {
    for (let seed = 1; seed <= 8; seed++) {
      const repairs: unknown[] = []
      const problems: string[] = []
      for (const { entries, generation } of await viewsOf(seed)) {
        const model = modelWith((_url, init) => {
          const body: unknown = JSON.parse(new TextDecoder().decode(init?.body as Uint8Array))
          problems.push(...requestProblems(api, body, { version: '2023-06-01', allow: OF_VENDORS }))
          return Promise.resolve(Response.json({ error: { message: 'Enough.' } }, { status: 400 }))
        })
        const constants = { instructions: 'Be short.', tools: [], structuredOutput: null, settings: {} }
        const signal = new AbortController().signal
        const onRepair = (repair: unknown): void => void repairs.push(repair)
        await expect(model.openSession().turn(entries, constants, { signal, generation, onRepair })).rejects.toThrow(
          'Enough',
        )
      }
      expect(problems).toEqual([])
      expect(repairs).toEqual([])
    }
  })

  async function viewsOf(
    seed: number,
  ): Promise<readonly { entries: readonly TranscriptEntry[]; generation: number }[]> {
    const random = randomOf(seed)
    const views: { entries: readonly TranscriptEntry[]; generation: number }[] = []
    const writer = windowedModel({ window: 1_000_000, reply: () => [{ type: 'text', text: 'A summary.' }] })
    const watching = defineExtension({
      name: 'watching',
      wrapModelCall: (call, next) => {
        // The last one of each ten, with all that came before.
        if (views.length === 0 || call.transcript.length % 5 === 0)
          views.push({ entries: [...call.transcript], generation: views.length })
        return next(call)
      },
    })
    const window = 4000 + Math.floor(random() * 10_000)
    const model = windowedModel({ window, reply: lookingFor(30, () => 1 + Math.floor(random() * 3)) })
    const look = tool('look', () => 'x'.repeat(Math.floor(random() ** 3 * window)))
    const use = [watching, seed % 2 === 0 ? clearResults() : summarise({ model: writer, maxTokens: 100 })]
    await harnessOf({ model, tools: [look], use, limits: { modelRequests: null, toolCalls: null } }).run('Go.')
    return views
  }
})
