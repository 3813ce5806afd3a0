import type { LanguageModelV2, LanguageModelV3 } from '@ai-sdk/provider'
import { describe, expect, expectTypeOf, test } from 'vitest'
import type { ModelSettings, RequestConstants } from 'thinharness'
import type { ReasoningEffort, ToolChoice } from '#core/model-session.js'
import { fromAiSdk } from '#providers/ai-sdk/index.js'
import type { AiSdkLanguageModel, AiSdkOptions } from '#providers/ai-sdk/index.js'
import { Conversation, errorOf, FakeLanguageModel, LOOKUP, reply, text } from './support.js'
import type { VersionName } from './support.js'

interface Asked {
  readonly constants?: Partial<RequestConstants>
  readonly settings?: ModelSettings
  readonly options?: AiSdkOptions
  readonly provider?: string
  readonly version?: VersionName
  readonly toolChoice?: ToolChoice
}

/** The options of the call of the language model. */
async function callOf({
  constants = {},
  settings = {},
  options = {},
  provider,
  version,
  toolChoice,
}: Asked): Promise<Readonly<Record<string, unknown>>> {
  const model = new FakeLanguageModel([reply([text('Hm.')])], {
    ...(provider !== undefined && { provider }),
    ...(version !== undefined && { version }),
  })
  const conversation = new Conversation(fromAiSdk(model, options), { ...constants, settings })
  await conversation.say('Hi', toolChoice === undefined ? {} : { toolChoice })
  return model.calls[0] ?? {}
}

const HI = { role: 'user', content: [{ type: 'text', text: 'Hi' }] }
const FUNCTION = { type: 'function', name: 'lookup', description: 'Looks it up.', inputSchema: LOOKUP.parameters }
const SCHEMA = { type: 'object', properties: { n: { type: 'number' } } }

describe('a call', () => {
  test('it has no empty fields', async () => {
    expect(await callOf({})).toEqual({ prompt: [HI] })
  })

  test('has the instructions first, the tools, and the settings', async () => {
    const constants = { instructions: 'Be brief.', tools: [LOOKUP, { name: 'b', description: '', parameters: {} }] }
    const settings = { maxOutputTokens: 9, temperature: 0.5, toolChoice: 'required' } as const
    expect(await callOf({ constants, settings })).toEqual({
      prompt: [{ role: 'system', content: 'Be brief.' }, HI],
      tools: [FUNCTION, { type: 'function', name: 'b', inputSchema: { type: 'object', properties: {} } }],
      toolChoice: { type: 'required' },
      maxOutputTokens: 9,
      temperature: 0.5,
    })
  })

  test('settings of the run win over those of the factory', async () => {
    const options = {
      maxOutputTokens: 1,
      temperature: 1,
      headers: { 'x-own': 'yes' },
      callOptions: { topP: 0.9, seed: 7 },
      providerOptions: { acme: { a: 1, b: { c: 1, d: 1 } } },
    }
    const settings = { temperature: 0, providerOptions: { acme: { b: { c: 2 } } } }
    expect(await callOf({ settings, options })).toEqual({
      prompt: [HI],
      maxOutputTokens: 1,
      temperature: 0,
      headers: { 'x-own': 'yes' },
      topP: 0.9,
      seed: 7,
      providerOptions: { acme: { a: 1, b: { c: 2, d: 1 } } },
    })
  })

  test.each<[ToolChoice, object | undefined, object]>([
    ['auto', undefined, { type: 'auto' }],
    ['none', { type: 'none' }, { type: 'none' }],
    [{ tool: 'lookup' }, { type: 'tool', toolName: 'lookup' }, { type: 'tool', toolName: 'lookup' }],
  ])('the choice of tools %j, of the run, and of one turn in its place', async (toolChoice, ofRun, ofTurn) => {
    const constants = { tools: [LOOKUP] }
    expect((await callOf({ constants, settings: { toolChoice } }))['toolChoice']).toEqual(ofRun)
    const settings = { toolChoice: 'required' } as const
    expect((await callOf({ constants, settings, toolChoice }))['toolChoice']).toEqual(ofTurn)
  })

  test('a schema for the answer', async () => {
    const structuredOutput = { name: 'answer', schema: SCHEMA, strict: true, description: 'The answer.' }
    expect(await callOf({ constants: { structuredOutput } })).toEqual({
      prompt: [HI],
      responseFormat: { type: 'json', name: 'answer', schema: SCHEMA, description: 'The answer.' },
    })
  })
})

describe('known facts about a provider', () => {
  test.each<[string, string, Partial<Asked>, object | undefined]>([
    ["OpenAI's server keeps nothing", 'openai.responses', {}, { openai: { store: false } }],
    [
      'unless it is told to',
      'openai.responses',
      { options: { providerOptions: { openai: { store: true } } } },
      { openai: { store: true } },
    ],
    ['chat completions keep nothing anyway', 'openai.chat', {}, undefined],
    [
      'Azure under the name that is in use',
      'azure.responses',
      { settings: { providerOptions: { azure: { user: 'u' } } } },
      { azure: { store: false, user: 'u' } },
    ],
    ['Anthropic caches', 'anthropic.messages', {}, { anthropic: { cacheControl: { type: 'ephemeral' } } }],
    [
      'for an hour',
      'anthropic.messages',
      { options: { promptCache: { ttl: '1h' } } },
      { anthropic: { cacheControl: { type: 'ephemeral', ttl: '1h' } } },
    ],
    ['or not', 'anthropic.messages', { options: { promptCache: false } }, undefined],
    ['Vertex refuses such a mark', 'vertex.anthropic.messages', {}, undefined],
    [
      "OpenAI's cache has a key",
      'openai.chat',
      { options: { promptCache: { key: 'k', ttl: '1h' } } },
      { openai: { promptCacheKey: 'k', promptCacheRetention: '24h' } },
    ],
  ])('%s (%s)', async (_name, provider, asked, providerOptions) => {
    expect(await callOf({ provider, ...asked })).toEqual({ prompt: [HI], ...(providerOptions && { providerOptions }) })
  })

  test("OpenAI is informed that a tool's schema need not be strict, and an answer's if it cannot be", async () => {
    const structuredOutput = { name: 'answer', schema: SCHEMA, strict: false }
    expect(await callOf({ provider: 'openai.chat', constants: { structuredOutput, tools: [LOOKUP] } })).toEqual({
      prompt: [HI],
      tools: [{ ...FUNCTION, strict: false }],
      responseFormat: { type: 'json', name: 'answer', schema: SCHEMA },
      providerOptions: { openai: { strictJsonSchema: false } },
    })
  })

  test("PR-11 the harness's own schema wins over one in the provider options", async () => {
    const structuredOutput = { name: 'answer', schema: SCHEMA, strict: true }
    const settings = { providerOptions: { openai: { textFormat: { type: 'text' }, user: 'u' } } }
    const given = { provider: 'openai.responses', settings }
    expect(await callOf(given)).toMatchObject({ providerOptions: { openai: { textFormat: { type: 'text' } } } })
    expect(await callOf({ ...given, constants: { structuredOutput } })).toMatchObject({
      providerOptions: { openai: { store: false, user: 'u' } },
    })
    expect(await callOf({ ...given, constants: { structuredOutput } })).not.toHaveProperty(
      'providerOptions.openai.textFormat',
    )
  })
})

describe('the reasoning effort', () => {
  test.each<[VersionName, string, string, ReasoningEffort, object]>([
    ['v4', 'acme.chat', 'm', 'xhigh', { reasoning: 'xhigh' }],
    ['v3', 'openai.chat', 'm', 'high', { providerOptions: { openai: { reasoningEffort: 'high' } } }],
    ['v2', 'xai.chat', 'm', 'low', { providerOptions: { xai: { reasoningEffort: 'low' } } }],
    ['v3', 'groq.chat', 'm', 'low', { providerOptions: { groq: { reasoningEffort: 'low' } } }],
    [
      'v3',
      'vertex.anthropic.messages',
      'claude-sonnet-5',
      'minimal',
      { providerOptions: { anthropic: { thinking: { type: 'adaptive', display: 'summarized' }, effort: 'low' } } },
    ],
    [
      'v2',
      'vertex.anthropic.messages',
      'claude-sonnet-4-5-20250929',
      'high',
      { providerOptions: { anthropic: { thinking: { type: 'enabled', budgetTokens: 16384 } } } },
    ],
    [
      'v3',
      'vertex.anthropic.messages',
      'claude-opus-4-6',
      'none',
      { providerOptions: { anthropic: { thinking: { type: 'disabled' } } } },
    ],
    [
      'v3',
      'google.generative-ai',
      'gemini-3-pro',
      'max',
      { providerOptions: { google: { thinkingConfig: { thinkingLevel: 'high' } } } },
    ],
    [
      'v3',
      'google.vertex.chat',
      'gemini-2.5-flash',
      'none',
      { providerOptions: { google: { thinkingConfig: { thinkingBudget: 0 } } } },
    ],
  ])('%s, %s, %s: %s', async (version, provider, modelId, reasoningEffort, expected) => {
    const model = new FakeLanguageModel([reply([text('Hm.')])], { version, provider })
    const named = Object.assign(model, { modelId })
    await new Conversation(fromAiSdk(named), { settings: { reasoningEffort } }).say('Hi')
    expect(model.calls[0]).toEqual({ prompt: [HI], ...expected })
  })

  test('an effort without a known form is reported at once or before any request', async () => {
    const model = new FakeLanguageModel([], { provider: 'acme.chat' })
    const expected = {
      code: 'invalid_options',
      message:
        "`reasoningEffort` is not supported for `acme.chat` of the AI SDK: set the provider's own option, as `providerOptions: { 'acme': { … } }`.",
    }
    expect(await errorOf(() => fromAiSdk(model, { reasoningEffort: 'low' }))).toMatchObject(expected)
    const conversation = new Conversation(fromAiSdk(model), { settings: { reasoningEffort: 'low' } })
    expect(await errorOf(conversation.say('Hi'))).toMatchObject(expected)
  })

  test('an effort that the model is declared not to support is rejected', async () => {
    const model = new FakeLanguageModel([], { version: 'v4' })
    const options: AiSdkOptions = { capabilities: { reasoningEfforts: ['low', 'high'] } }
    const expected = { code: 'invalid_options', message: expect.stringContaining('`low`, `high`') as string }
    expect(await errorOf(() => fromAiSdk(model, { ...options, reasoningEffort: 'max' }))).toMatchObject(expected)
    const conversation = new Conversation(fromAiSdk(model, options), { settings: { reasoningEffort: 'max' } })
    expect(await errorOf(conversation.say('Hi'))).toMatchObject(expected)
  })
})

describe('invalid arguments of `fromAiSdk`', () => {
  const fake = new FakeLanguageModel([])

  test.each<[string, unknown, string]>([
    ['a text', 'openai/gpt-5.5', 'got the string `openai/gpt-5.5`, which needs a gateway.'],
    ['nothing', null, 'got `null`.'],
    ['a function', () => fake, 'got a function.'],
    ['another object', {}, 'got an object without `doGenerate` and `doStream`.'],
    ['a model without a name', { ...methods(), specificationVersion: 'v3' }, 'without a `provider` and a `modelId`'],
    [
      'an old version',
      { ...methods(), specificationVersion: 'v1', provider: 'openai.chat', modelId: 'gpt-4o' },
      'Expected a language model of specification `v2`, `v3`, `v4`, got `v1` (`gpt-4o` of `openai.chat`).',
    ],
    ['no version', { ...methods(), provider: 'a', modelId: 'm' }, 'got nothing (`m` of `a`).'],
  ])('%s', async (_name, given, message) => {
    const error = await errorOf(() => fromAiSdk(given as AiSdkLanguageModel))
    expect(error).toMatchObject({ code: 'invalid_options', message: expect.stringContaining(message) as string })
  })

  test.each<[string, unknown, string]>([
    ['no options', null, 'Expected the options of `fromAiSdk` to be an object, got `null`.'],
    ['an option that only our own transports know', { apiKey: 'k' }, 'Unknown option of `fromAiSdk`: `apiKey`.'],
    ['a misspelt option', { maxRetrys: 1 }, 'Did you mean `maxRetries`?'],
    ['a value that cannot be', { maxRetries: -1 }, '`maxRetries`'],
    ['provider options that are none', { providerOptions: 1 }, '`providerOptions`'],
    ['provider options of one that are none', { providerOptions: { openai: true } }, '`providerOptions.openai`'],
    ['call options that are none', { callOptions: 1 }, '`callOptions`'],
    ['a misspelt call option', { callOptions: { topp: 1 } }, 'Did you mean `topP`?'],
  ])('%s', async (_name, options, message) => {
    const error = await errorOf(() => fromAiSdk(fake, options as AiSdkOptions))
    expect(error).toMatchObject({ code: 'invalid_options', message: expect.stringContaining(message) as string })
  })

  function methods(): object {
    return { doGenerate: () => undefined, doStream: () => undefined }
  }
})

test('`fromAiSdk` accepts models of the AI SDK by their types', () => {
  expectTypeOf<LanguageModelV2>().toExtend<AiSdkLanguageModel>()
  expectTypeOf<LanguageModelV3>().toExtend<AiSdkLanguageModel>()
})

describe('a model', () => {
  test('is known by the name of its provider, and has the capabilities that are known or given', () => {
    expect(fromAiSdk(new FakeLanguageModel([]))).toMatchObject({
      provider: 'ai-sdk:acme.chat',
      id: 'm',
      capabilities: { permissiveNativeOverride: true },
    })
    const openai = new FakeLanguageModel([], { provider: 'openai.responses' })
    expect(fromAiSdk(openai, { capabilities: { contextTokens: 9 } }).capabilities).toEqual({
      permissiveNativeOverride: true,
      supportsJsonSchemaOutput: true,
      defaultStructuredOutputMode: 'native',
      contextTokens: 9,
    })
  })

  test('it opens no session once it is closed', async () => {
    const model = fromAiSdk(new FakeLanguageModel([]))
    await model.close?.()
    expect(await errorOf(() => model.openSession())).toMatchObject({ code: 'closed' })
  })
})
