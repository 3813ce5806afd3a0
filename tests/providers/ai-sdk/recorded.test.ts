import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { describe, expect, test } from 'vitest'
import type { Model } from 'thinharness'
import { fromAiSdk } from '#providers/ai-sdk/index.js'
import { answerOf, atRandom, expectAnswer, fetchOf, providerCases, whole } from '../../support/provider-cases.js'
import type { Cut, ProviderCase } from '../../support/provider-cases.js'

const CASES = ['anthropic-messages', 'openai-responses', 'openai-chat', 'compat-chat', 'compat-responses'].flatMap(
  providerCases,
)

/** Cases that the AI SDK's providers cannot read, or read only in part. */
const LOST: ReadonlyMap<string, string> = new Map([
  ['anthropic-messages/json-server-block-fallback-01.json', 'a block that it leaves out'],
  ['anthropic-messages/json-server-block-mcp-01.json', 'it fails'],
  ['openai-responses/stream-hosted-program-01.json', 'an item that it leaves out'],
  ['openai-responses/json-background-queued-01.json', 'it says `stop`'],
  ['openai-responses/json-hosted-compaction-01.json', 'it refuses the reply'],
  ['openai-chat/json-refusal-02.json', 'the refusal is the text'],
  ['mutated-streams/openai-chat-text-error-event.json', 'an error that it leaves out'],
  ['compat-chat/json-snowflake-tool-01.json', 'a field that it leaves out'],
  ['compat-chat/json-together-tool-01.json', 'usage that it leaves out'],
  ['compat-chat/stream-together-text-01.json', 'usage that it leaves out'],
  ['compat-chat/stream-groq-text-01.json', 'usage that it leaves out'],
])

/** The AI SDK's provider for the API, which gets the recorded answer. */
function modelOf(each: ProviderCase, cut: Cut): Model {
  const fetch = fetchOf(each, cut)
  const asked = each.request?.body['model']
  const id = typeof asked === 'string' ? asked : 'm'
  const options = { maxRetries: 0 }
  if (each.api === 'anthropic-messages') return fromAiSdk(createAnthropic({ apiKey: 'k', fetch })(id), options)
  const openai = createOpenAI({ apiKey: 'k', fetch })
  return fromAiSdk(each.api.includes('chat') ? openai.chat(id) : openai.responses(id), options)
}

describe('recorded answers, read by the AI SDK', () => {
  test.each(CASES.filter(({ file }) => !LOST.has(file)))('$file', async (each) => {
    expectAnswer(each, await answerOf(modelOf(each, whole), each))
    if (each.stream) expectAnswer(each, await answerOf(modelOf(each, atRandom(7)), each))
  })

  test.each(CASES.filter(({ file }) => LOST.has(file)))('$file is no crash', async (each) => {
    const { turn, error } = await answerOf(modelOf(each, whole), each)
    expect(turn === undefined ? error?.code : 'a turn').toMatch(/^(a turn|provider_error)$/)
  })

  test('every omitted case exists', () => {
    const files = CASES.map(({ file }) => file)
    expect([...LOST.keys()].filter((file) => !files.includes(file))).toEqual([])
  })
})
