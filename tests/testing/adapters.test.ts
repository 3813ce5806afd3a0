import { describe, expect, test } from 'vitest'
import { defineTool, Harness, textOf, toolCallsOf } from 'thinharness'
import type { Model, ModelDelta, ModelSession, ModelTurn } from 'thinharness'
import { anthropic, gemini, openai, openaiCompatible, openrouter } from 'thinharness/providers'
import { scriptedProvider, ScriptedModel } from 'thinharness/testing'
import type { ScriptedProvider } from 'thinharness/testing'

type Entry = Parameters<ModelSession['turn']>[0][number]

const MODELS: readonly (readonly [string, (provider: ScriptedProvider) => Model])[] = [
  ['openai', ({ url }) => openai('gpt-5.5', { apiKey: 'any', baseUrl: url.responses, maxRetries: 0 })],
  [
    'openai, chained',
    ({ url }) => openai('gpt-5.5', { apiKey: 'any', baseUrl: url.responses, maxRetries: 0, chain: true }),
  ],
  ['openaiCompatible', ({ url }) => openaiCompatible('local', { baseUrl: url.chat, maxRetries: 0 })],
  ['openrouter', ({ url }) => openrouter('x/y', { apiKey: 'any', baseUrl: url.openrouter, maxRetries: 0 })],
  ['anthropic', ({ url }) => anthropic('claude-sonnet-5', { apiKey: 'any', baseUrl: url.messages, maxRetries: 0 })],
  ['gemini', ({ url }) => gemini('gemini-3-pro', { apiKey: 'any', baseUrl: url.gemini, maxRetries: 0 })],
]
const FORMS = MODELS.flatMap(([name, make]) => [true, false].map((streamed) => ({ name, make, streamed })))

const READ = { name: 'read', description: 'Reads a file.', parameters: { type: 'object', properties: {} } }
const CONSTANTS = { instructions: 'Be brief.', tools: [READ], structuredOutput: null, settings: {} }
const STAMP = { id: 'e', at: '2026-01-01T00:00:00.000Z' }
const user = (text: string): Entry => ({ role: 'user', ...STAMP, content: [{ type: 'text', text }] })

function scripted(provider: ScriptedProvider): ScriptedProvider {
  return provider
    .calls('read', { path: 'a b' }, { reasoning: 'Two words.', text: 'Let me look.' })
    .callsAll([{ name: 'read', arguments: { path: 'x' } }, { name: 'read' }], { reasoning: '' })
    .says('Done, all of it.', { finishReason: 'length' })
    .refuses('No.')
}

/** Four turns, every call answered, a further question after a reply without calls. */
async function converse(model: Model, streamed: boolean): Promise<{ turn: ModelTurn; deltas: ModelDelta[] }[]> {
  const session = model.openSession()
  const transcript = [user('Look.')]
  const turns: { turn: ModelTurn; deltas: ModelDelta[] }[] = []
  for (let count = 0; count < 4; count++) {
    const deltas: ModelDelta[] = []
    const onDelta = (delta: ModelDelta): void => void deltas.push(delta)
    const options = { generation: 0, signal: new AbortController().signal, ...(streamed && { onDelta }) }
    const turn = await session.turn(transcript, CONSTANTS, options)
    turns.push({ turn, deltas })
    transcript.push({ ...turn.entry, ...STAMP })
    for (const { callId, name } of toolCallsOf(turn.entry.parts)) {
      const content = JSON.stringify({ ok: true, content: 'A', metadata: {} })
      transcript.push({ role: 'tool', ...STAMP, callId, name, content, isError: false })
    }
    if (toolCallsOf(turn.entry.parts).length === 0) transcript.push(user('Go on.'))
  }
  return turns
}

describe('the adapters', () => {
  test.each(FORMS)('return the scripted reply ($name, streamed: $streamed)', async ({ make, streamed }) => {
    await using provider = scripted(await scriptedProvider({ chunks: 5 }))
    const turns = await converse(make(provider), streamed)
    const heard = turns.map(({ turn }) => [
      textOf(turn.entry.parts),
      turn.entry.finishReason,
      toolCallsOf(turn.entry.parts).map((call) => call.arguments),
    ])
    expect(heard).toEqual([
      ['Let me look.', 'tool_calls', ['{"path":"a b"}']],
      ['', 'tool_calls', ['{"path":"x"}', '{}']],
      ['Done, all of it.', 'length', []],
      // Gemini has no words for a refusal.
      ['', turns[0]?.turn.entry.provider.startsWith('google') ? 'content_filter' : 'refusal', []],
    ])
    const reasoning = turns[0]?.turn.entry.parts.find((part) => part.type === 'reasoning')
    expect(reasoning?.text).toBe('Two words.')
    if (streamed) expect(turns[0]?.deltas.filter(({ kind }) => kind === 'text_delta').length).toBeGreaterThan(1)
    for (const { usage } of turns.map(({ turn }) => turn.entry)) {
      expect(usage.inputTokens).toBeGreaterThan(0)
      expect(usage.outputTokens).toBeGreaterThan(0)
    }
    expect(turns[1]?.turn.entry.usage.cacheReadTokens).toBeGreaterThan(0)
  })

  test.each(MODELS)('return the same turns streamed and whole (%s)', async (_name, make) => {
    await using one = scripted(await scriptedProvider())
    await using other = scripted(await scriptedProvider())
    const streamed = (await converse(make(one), true)).map(({ turn }) => ({ ...turn, raw: null }))
    const whole = (await converse(make(other), false)).map(({ turn }) => ({ ...turn, raw: null }))
    // What is a server's own is marked with its address.
    const withoutPort = (turns: unknown): unknown =>
      JSON.parse(JSON.stringify(turns).replaceAll(/127\.0\.0\.1:\d+/g, 'host'))
    expect(withoutPort(streamed)).toEqual(withoutPort(whole))
  })

  test.each(MODELS)('report an error if the reply does not arrive as it should (%s)', async (_name, make) => {
    await using provider = await scriptedProvider()
    const model = make(provider)
    const reply = { text: 'One two three.', calls: [{ name: 'read' }] }
    for (const how of ['reset', 'truncate', 'garble', 'error'] as const) provider.breaks(how, { reply, after: 3 })
    provider.breaks('reset', { after: 0 }).fails(400)
    for (let count = 0; count < 6; count++) {
      const options = { generation: 0, signal: new AbortController().signal, onDelta: () => undefined }
      await expect(model.openSession().turn([user('Go.')], CONSTANTS, options)).rejects.toMatchObject({
        code: 'provider_error',
      })
    }
  })
})

describe('a harness', () => {
  const read = defineTool({
    name: 'read',
    description: 'Reads a file.',
    parameters: { type: 'object', properties: { path: { type: 'string' } } },
    handler: async ({ path }) => `This is ${typeof path === 'string' ? path : 'nothing'}.`,
  })

  test('runs with a scripted model, which records the requests', async () => {
    using model = new ScriptedModel().calls('read', { path: 'a' }).says('Done.')
    await using harness = new Harness({ model, builtinTools: [], tools: [read] })
    const result = await harness.run('Look into a.')
    expect(result.text).toBe('Done.')
    expect(model.heard).toEqual([
      { kind: 'start', prompt: 'Look into a.' },
      { kind: 'tool_outputs', outputs: [{ callId: 'call_1', ok: true, content: 'This is a.' }] },
    ])
  })

  test.each(MODELS)('runs many times at once with a rule-based provider (%s)', async (_name, make) => {
    await using provider = await scriptedProvider()
    provider.always(({ heard, messages }) => {
      if (heard.kind === 'tool_outputs') return `I read: ${heard.outputs[0]?.content ?? ''}`
      const prompt = messages[0]?.role === 'user' ? messages[0].content : ''
      return { calls: [{ name: 'read', arguments: { path: String(prompt) } }] }
    })
    await using harness = new Harness({ model: make(provider), builtinTools: [], tools: [read] })
    const names = Array.from({ length: 20 }, (_, index) => `file-${index}`)
    const results = await Promise.all(names.map((name) => harness.run(name)))
    expect(results.map((result) => result.text)).toEqual(names.map((name) => `I read: This is ${name}.`))
  })
})
