import { describe, expect, test } from 'vitest'
import type { Model } from 'thinharness'
import { anthropic, openai, openaiCompatible, probe } from 'thinharness/providers'
import type { ProbeOptions, ProbeReport } from 'thinharness/providers'
import { scriptedProvider } from 'thinharness/testing'
import type { ProviderFault, ProviderRequest, Reply, ScriptedProvider } from 'thinharness/testing'

type Answer = Reply | ProviderFault
type Rule = (request: ProviderRequest) => Answer | undefined

/** The answers of a server with all capabilities to the requests of a probe. */
function able({ messages, body }: ProviderRequest): Answer {
  const last = messages.at(-1)
  const prompt = last?.role === 'user' ? String(last.content) : ''
  if (prompt.includes('Lisbon and Oslo')) return { calls: [weather('Lisbon'), weather('Oslo')] }
  if (prompt.includes('Lisbon')) return { calls: [weather('Lisbon')] }
  if (prompt.includes('How many mm')) return { text: JSON.stringify(messages).includes('4127') ? '4,127 mm' : '?' }
  if (prompt.includes('spider')) return { text: hasSchema(body) ? '{"leg_count_8q":8}' : 'Eight.' }
  if (prompt.includes('9.11')) return hasEffort(body) ? { reasoning: 'Hm.', text: '9.9' } : { text: '9.9' }
  return { text: prompt.includes('Count') ? 'one, two, three, four' : 'ready' }
}

const weather = (city: string): { name: string; arguments: { city: string } } => ({
  name: 'get_weather',
  arguments: { city },
})
const hasSchema = (body: object): boolean => JSON.stringify(body).includes('json_schema')
const hasEffort = (body: object): boolean => JSON.stringify(body).includes('"low"')

async function serverOf(limited: Rule = () => undefined): Promise<ScriptedProvider> {
  const provider = await scriptedProvider()
  return provider.always((request) => limited(request) ?? able(request))
}

async function probed(rule?: Rule, options?: ProbeOptions): Promise<ProbeReport> {
  await using provider = await serverOf(rule)
  return await probe(openaiCompatible('local', { baseUrl: provider.url.chat, maxRetries: 0 }), options)
}

function found({ checks }: ProbeReport): Record<string, string> {
  return Object.fromEntries(Object.entries(checks).map(([name, check]) => [name, check.found]))
}

const ALL = [
  'answers',
  'usage',
  'streaming',
  'streamedUsage',
  'tools',
  'toolResults',
  'parallelCalls',
  'jsonSchema',
  'reasoning',
]
const everything = (is: string): Record<string, string> => Object.fromEntries(ALL.map((name) => [name, is]))

const refused = (message: string): Answer => ({ fault: 'status', status: 400, message })

const LIMITED: readonly (readonly [string, Rule, Record<string, string>, object])[] = [
  [
    'refuses tools',
    ({ tools }) => (tools.length > 0 ? refused('This model has no tools.') : undefined),
    { tools: 'no', toolResults: 'no', parallelCalls: 'no' },
    { supportsTools: false },
  ],
  [
    'ignores tools',
    ({ tools }) => (tools.length > 0 ? { text: 'I cannot call anything.' } : undefined),
    { tools: 'no', toolResults: 'no', parallelCalls: 'no' },
    { supportsTools: false },
  ],
  [
    'makes one call at a time',
    ({ messages }) => (JSON.stringify(messages).includes('Oslo') ? { calls: [weather('Lisbon')] } : undefined),
    { parallelCalls: 'no' },
    {},
  ],
  [
    'writes arguments that are no JSON',
    ({ tools, turn }) =>
      tools.length > 0 && turn === 0 ? { calls: [{ name: 'get_weather', arguments: 'Lisbon' }] } : undefined,
    { tools: 'no', parallelCalls: 'no' },
    { supportsTools: false },
  ],
  [
    'does not read results',
    ({ turn }) => (turn > 0 ? { text: 'I do not know.' } : undefined),
    { toolResults: 'no' },
    { supportsTools: false },
  ],
  [
    'ignores schemas',
    ({ body }) => (hasSchema(body) ? { text: 'Eight.' } : undefined),
    { jsonSchema: 'no' },
    { supportsJsonSchemaOutput: false, defaultStructuredOutputMode: 'tool' },
  ],
  [
    'refuses schemas, and tools',
    ({ body, tools }) => (hasSchema(body) || tools.length > 0 ? refused('What is this?') : undefined),
    { jsonSchema: 'no', tools: 'no', toolResults: 'no', parallelCalls: 'no' },
    { supportsTools: false, supportsJsonSchemaOutput: false, defaultStructuredOutputMode: 'prompted' },
  ],
  [
    'does not reason',
    ({ body }) => (hasEffort(body) ? { text: '9.9' } : undefined),
    { reasoning: 'no' },
    { reasoningEfforts: [] },
  ],
  [
    'refuses to stream',
    ({ streamed }) => (streamed ? refused('`stream` is not supported.') : undefined),
    { streaming: 'no', streamedUsage: 'no' },
    {},
  ],
  ['streams all at once', ({ streamed }) => (streamed ? { text: 'one' } : undefined), { streaming: 'no' }, {}],
  [
    'tells no usage in streams',
    ({ streamed }) => (streamed ? { text: 'one, two, three', usage: null } : undefined),
    { streamedUsage: 'no' },
    {},
  ],
  [
    'has no time for schemas now',
    ({ body }) => (hasSchema(body) ? { fault: 'status', status: 503, message: 'Later.' } : undefined),
    { jsonSchema: 'unknown' },
    { supportsJsonSchemaOutput: undefined, defaultStructuredOutputMode: undefined },
  ],
]

const ABLE = { supportsTools: true, supportsJsonSchemaOutput: true, defaultStructuredOutputMode: 'native' }

describe('a probe', () => {
  test.each<[string, (provider: ScriptedProvider) => Model]>([
    ['openaiCompatible', ({ url }) => openaiCompatible('m', { baseUrl: url.chat })],
    ['openai', ({ url }) => openai('gpt-5.5', { apiKey: 'any', baseUrl: url.responses })],
    ['anthropic', ({ url }) => anthropic('claude-sonnet-5', { apiKey: 'any', baseUrl: url.messages })],
  ])('it finds all capabilities of a server with ten requests (%s)', async (_name, make) => {
    await using provider = await serverOf()
    const model = make(provider)
    const report = await probe(model, { maxOutputTokens: 2048 })
    expect(found(report)).toEqual(everything('yes'))
    expect(report).toMatchObject({ provider: model.provider, model: model.id, capabilities: ABLE })
    expect(report.checks.answers.ms).toBeGreaterThanOrEqual(0)
    expect(provider.requests).toHaveLength(10)
  })

  test.each(LIMITED)('it finds a server that %s', async (_what, rule, checks, capabilities) => {
    const report = await probed(rule)
    expect(found(report)).toEqual({ ...everything('yes'), ...checks })
    expect(report.capabilities).toEqual({ ...ABLE, ...capabilities })
  })

  test('it reports the words with which a server rejects a request', async () => {
    const { checks } = await probed(({ tools }) => (tools.length > 0 ? refused('This model has no tools.') : undefined))
    expect(checks.tools).toMatchObject({
      found: 'no',
      because: expect.stringContaining('This model has no tools.') as string,
    })
  })

  test('it knows nothing and stops if the first request gets no answer', async () => {
    await using provider = await scriptedProvider()
    provider.fails(401, { message: 'Who are you?' })
    const report = await probe(openaiCompatible('local', { baseUrl: provider.url.chat }))
    expect(found(report)).toEqual(everything('unknown'))
    expect(report.capabilities).toEqual({})
    expect(report.checks.answers).toMatchObject({ because: expect.stringContaining('Who are you?') as string })
    expect(report.checks.usage).toMatchObject({ because: 'Not tried: the first request got no answer.' })
  })

  test('it waits for one check up to its limit', async () => {
    await using provider = await scriptedProvider()
    provider.breaks('idle', { after: 0 })
    const report = await probe(openaiCompatible('local', { baseUrl: provider.url.chat }), { timeoutMs: 50 })
    expect(report.checks.answers).toMatchObject({ found: 'unknown', because: 'No answer within 50 ms.' })
  })

  test('it ends at once when it is aborted, with the reason', async () => {
    const controller = new AbortController()
    const reason = new Error('Enough.')
    const abort: Rule = ({ tools }) => {
      if (tools.length > 0) controller.abort(reason)
      return undefined
    }
    await expect(probed(abort, { signal: controller.signal })).rejects.toBe(reason)
  })

  test.each([
    [{ timeout: 1 }, 'Unknown option of `probe`: `timeout`. Did you mean `timeoutMs`?'],
    [{ timeoutMs: 0 }, 'Expected `timeoutMs` of `probe` to be a whole number from 1 to 2147483647, got `0`.'],
    [{ maxOutputTokens: 1.5 }, 'Expected `maxOutputTokens` of `probe` to be a whole number from 1 up, got `1.5`.'],
  ])('it rejects invalid options (%o)', async (options, message) => {
    const model = openaiCompatible('local', { baseUrl: 'http://127.0.0.1:1/v1' })
    await expect(probe(model, options as ProbeOptions)).rejects.toThrow(message)
  })
})
