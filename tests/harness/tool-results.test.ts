import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { describe, expect, test } from 'vitest'
import { defineTool, Harness, ModelRetry, ToolResult } from 'thinharness'
import type { Model } from 'thinharness'
import { anthropic, fromAiSdk, openai, openaiCompatible } from 'thinharness/providers'
import { scriptedProvider } from 'thinharness/testing'
import type { Heard, ProviderApi } from 'thinharness/testing'

type Urls = Readonly<Record<ProviderApi, string>>

const KEY = { apiKey: 'any' }

/** Each API, and what it puts before a failure. */
const MODELS: readonly (readonly [string, string, (urls: Urls) => Model])[] = [
  ['anthropic', '', ({ messages }) => anthropic('claude-sonnet-5', { ...KEY, baseUrl: messages })],
  ['openai', 'Error: ', ({ responses }) => openai('gpt-5.5', { ...KEY, baseUrl: responses })],
  ['chat completions', 'Error: ', ({ chat }) => openaiCompatible('local', { ...KEY, baseUrl: chat })],
  ['AI SDK, OpenAI', 'Error: ', ({ responses }) => fromAiSdk(createOpenAI({ ...KEY, baseURL: responses })('gpt-5.5'))],
  [
    'AI SDK, Anthropic',
    '',
    ({ messages }) => fromAiSdk(createAnthropic({ ...KEY, baseURL: `${messages}/v1` })('claude-sonnet-5')),
  ],
]

const SOURCE = 'const a = "x"\n\treturn `${a}\\n`\n'

const tools = [
  defineTool({ name: 'source', description: 'Source.', parameters: { type: 'object' }, handler: () => SOURCE }),
  defineTool({
    name: 'rows',
    description: 'Rows.',
    parameters: { type: 'object' },
    handler: () => new ToolResult({ content: [{ id: 2, at: 'x' }], metadata: { host_path: '/srv/db' } }),
  }),
  defineTool({
    name: 'retry',
    description: 'Fails.',
    parameters: { type: 'object' },
    handler: () => {
      throw new ModelRetry('The id has 8 digits.')
    },
  }),
]

describe.each(MODELS)('with %s', (_name, prefix, make) => {
  test('the model reads the content of a result itself, and the log, the hooks and the result keep the envelope', async () => {
    await using provider = await scriptedProvider()
    const heard: Heard[] = []
    provider.always((request) => {
      heard.push(request.heard)
      return request.turn === 0 ? { calls: tools.map(({ name }) => ({ name })) } : 'Done.'
    })
    const seen: string[] = []
    await using harness = new Harness({
      model: make(provider.url),
      tools,
      hooks: [{ event: 'after_tool_call', handler: ({ output }) => void seen.push(output) }],
      toolExecution: 'sequential',
    })

    const result = await harness.run('Go.')

    expect(heard[1]).toMatchObject({
      outputs: [
        { ok: true, content: SOURCE },
        { ok: true, content: '[{"id":2,"at":"x"}]' },
        { ok: false, content: `${prefix}The id has 8 digits.\nCorrect this and call the tool again.` },
      ],
    })
    const envelopes = [
      { ok: true, content: SOURCE, metadata: {} },
      { ok: true, content: '[{"id":2,"at":"x"}]', metadata: { host_path: '/srv/db' } },
      { ok: false, content: 'The id has 8 digits.', metadata: { error_type: 'ModelRetry', retry: true } },
    ].map((envelope) => JSON.stringify(envelope))
    expect(seen).toEqual(envelopes)
    expect(result.toolCallRecords.map(({ output }) => output)).toEqual(envelopes)
    expect(result.transcript.flatMap((entry) => (entry.role === 'tool' ? [entry.content] : []))).toEqual(envelopes)
  })
})
