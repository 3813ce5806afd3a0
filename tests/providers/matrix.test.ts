import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { textOf } from 'thinharness'
import type { Model, ModelSession, RequestConstants, TranscriptEntry } from 'thinharness'
import type { TranscriptRepair } from '#contracts/mend.js'
import { anthropic, fromAiSdk, gemini, openai, openaiChat, openaiCompatible, openrouter } from 'thinharness/providers'
import { scriptedProvider } from 'thinharness/testing'
import type { ProviderApi, ScriptedProvider } from 'thinharness/testing'
import { envelopeOf, renderEnvelope } from '#core/tools/boundary/envelope.js'
import type { ToolOutcome } from '#core/tools/outcome.js'

/** Every kind of model, before one scripted provider, which is as strict as the APIs are. */
const MODELS: Readonly<Record<string, (url: Readonly<Record<ProviderApi, string>>) => Model>> = {
  openai: ({ responses }) => openai('gpt-5.5', { ...KEY, baseUrl: responses }),
  'openai without reasoning': ({ responses }) => openai('gpt-4.1', { ...KEY, baseUrl: responses }),
  'openai, chained': ({ responses }) => openai('gpt-5.5', { ...KEY, baseUrl: responses, chain: true }),
  openaiChat: ({ chat }) => openaiChat('gpt-4.1', { ...KEY, baseUrl: chat }),
  openaiCompatible: ({ chat }) => openaiCompatible('local', { ...KEY, baseUrl: chat }),
  openrouter: ({ openrouter: baseUrl }) => openrouter('x/y', { ...KEY, baseUrl }),
  anthropic: ({ messages }) => anthropic('claude-sonnet-5', { ...KEY, baseUrl: messages }),
  'anthropic without thoughts': ({ messages }) =>
    anthropic('claude-sonnet-5', { ...KEY, baseUrl: messages, reasoningEffort: 'none', apiVersion: '2026-10-21' }),
  gemini: ({ gemini: baseUrl }) => gemini('gemini-3-pro', { ...KEY, baseUrl }),
  'gemini without thoughts': ({ gemini: baseUrl }) =>
    gemini('gemini-2.5-flash', { ...KEY, baseUrl, reasoningEffort: 'none' }),
  'AI SDK, OpenAI': ({ responses }) => fromAiSdk(createOpenAI({ apiKey: 'any', baseURL: responses })('gpt-5.5')),
  'AI SDK, Anthropic': ({ messages }) =>
    fromAiSdk(createAnthropic({ apiKey: 'any', baseURL: `${messages}/v1` })('claude-sonnet-5')),
}
const KEY = { apiKey: 'any', maxRetries: 0 }
const NAMES = Object.keys(MODELS)

const OUTCOMES: Readonly<Record<string, ToolOutcome | null>> = {
  done: { kind: 'succeeded', content: 'Found.' },
  failed: { kind: 'failed', errorType: 'Error', content: 'Out of order.', retry: false },
  rejected: { kind: 'rejected', reason: 'Not now.' },
  missing: null,
}
const CALLS = 3

const LOOK = { name: 'look', description: 'Looks.', parameters: { type: 'object', properties: {} } }
const CONSTANTS: RequestConstants = {
  instructions: 'Be brief.',
  tools: [LOOK],
  structuredOutput: null,
  settings: {},
}
const STAMP = { id: 'e', at: '2026-01-01T00:00:00.000Z' }
const user = (text: string): TranscriptEntry => ({ role: 'user', ...STAMP, content: [{ type: 'text', text }] })

let provider: ScriptedProvider
beforeAll(async () => {
  provider = await scriptedProvider()
  const calls = Array.from({ length: CALLS }, (_, n) => ({ name: 'look', arguments: { n } }))
  provider.always(({ turn, messages }) => {
    const prompt = messages[0]?.role === 'user' ? messages[0].content : ''
    if (turn > 0) return `Heard: ${messages.length} messages.`
    return { reasoning: prompt === 'Think in secret.' ? '' : 'It must be somewhere.', text: 'I look.', calls }
  })
})
afterAll(async () => {
  await provider.close()
})

function modelOf(name: string): Model {
  return MODELS[name]!(provider.url)
}

async function replyOf(model: Model, prompt: string): Promise<readonly TranscriptEntry[]> {
  const { entry } = await turn(model.openSession(), [user(prompt)])
  return [user(prompt), { ...entry, ...STAMP }]
}

function turn(
  session: ModelSession,
  transcript: readonly TranscriptEntry[],
  onRepair: (repair: TranscriptRepair) => void = () => undefined,
): ReturnType<ModelSession['turn']> {
  return session.turn(transcript, CONSTANTS, { generation: 0, signal: new AbortController().signal, onRepair })
}

/** The answers to the calls of the last reply: all done but the one at `position`. */
function resultsOf(
  reply: TranscriptEntry | undefined,
  position: number,
  outcome: ToolOutcome | null,
): TranscriptEntry[] {
  const calls = reply?.role === 'assistant' ? reply.parts.filter((part) => part.type === 'tool_call') : []
  return calls.flatMap(({ callId, name }, index): TranscriptEntry[] => {
    const given = index === position ? outcome : OUTCOMES['done']!
    if (given === null) return []
    const content = renderEnvelope(envelopeOf(given))
    return [{ role: 'tool', ...STAMP, callId, name, content, isError: given.kind !== 'succeeded' }]
  })
}

const CELLS = Array.from({ length: CALLS }, (_, position) =>
  Object.entries(OUTCOMES).map(([name, outcome]) => ({ position, name, outcome })),
).flat()

describe.each(NAMES)('a run started by %s', (source) => {
  test.each(NAMES)('RS-04 RS-07 a run continues with another model, at any call of the batch: %s', async (target) => {
    const prompt = (NAMES.indexOf(source) + NAMES.indexOf(target)) % 2 === 0 ? 'Think.' : 'Think in secret.'
    const begun = await replyOf(modelOf(source), prompt)
    const model = modelOf(target)
    for (const { position, name, outcome } of CELLS) {
      const repairs: TranscriptRepair[] = []
      const transcript = [...begun, ...resultsOf(begun[1], position, outcome), user('Go on.')]
      const asked = turn(model.openSession(), transcript, (repair) => void repairs.push(repair))
      const text = await asked.then(({ entry }) => textOf(entry.parts), String)
      // A prompt, a reply, three results, a prompt.
      expect(text, `${name} at ${position}`).toBe('Heard: 6 messages.')
      expect(repairs.map(({ problem }) => problem)).toEqual(outcome === null ? ['missing_result'] : [])
    }
  })

  test.each(NAMES)('it continues with %s and returns, with all its own data', async (target) => {
    const session = modelOf(source).openSession()
    const prompt = user('Think.')
    const first = { ...(await turn(session, [prompt])).entry, ...STAMP }
    const answered = [prompt, first, ...resultsOf(first, -1, null)]
    const second = { ...(await turn(modelOf(target).openSession(), answered)).entry, ...STAMP }
    const back = [...answered, second, user('And now?')]
    expect(textOf((await turn(session, back)).entry.parts)).toBe('Heard: 7 messages.')
  })
})
