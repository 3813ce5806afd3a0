import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { afterAll, beforeAll } from 'vitest'
import type { Model, ModelSession, RequestConstants, TranscriptEntry } from 'thinharness'
import type { TranscriptRepair } from '#contracts/mend.js'
import { anthropic, fromAiSdk, gemini, openai, openaiChat, openaiCompatible, openrouter } from 'thinharness/providers'
import { scriptedProvider } from 'thinharness/testing'
import type { ProviderApi, ScriptedProvider } from 'thinharness/testing'
import { envelopeOf, renderEnvelope } from '#core/tools/boundary/envelope.js'
import type { ToolOutcome } from '#core/tools/tool-spec.js'

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
export const NAMES = Object.keys(MODELS)

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
export const STAMP = { id: 'e', at: '2026-01-01T00:00:00.000Z' }
export const user = (text: string): TranscriptEntry => ({ role: 'user', ...STAMP, content: [{ type: 'text', text }] })

let provider: ScriptedProvider

/** Opens the provider that all of them ask, for the tests of the file. */
export function withProvider(): void {
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
}

export function modelOf(name: string): Model {
  return MODELS[name]!(provider.url)
}

export async function replyOf(model: Model, prompt: string): Promise<readonly TranscriptEntry[]> {
  const { entry } = await turn(model.openSession(), [user(prompt)])
  return [user(prompt), { ...entry, ...STAMP }]
}

export function turn(
  session: ModelSession,
  transcript: readonly TranscriptEntry[],
  onRepair: (repair: TranscriptRepair) => void = () => undefined,
): ReturnType<ModelSession['turn']> {
  return session.turn(transcript, CONSTANTS, { generation: 0, signal: new AbortController().signal, onRepair })
}

/** The answers to the calls of the last reply: all done but the one at `position`. */
export function resultsOf(
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

export const CELLS = Array.from({ length: CALLS }, (_, position) =>
  Object.entries(OUTCOMES).map(([name, outcome]) => ({ position, name, outcome })),
).flat()
