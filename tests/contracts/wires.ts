import { expect } from 'vitest'
import { fromMessages, Harness } from 'thinharness'
import type { Model, TranscriptEntry } from 'thinharness'
import { anthropic, gemini, openai, openaiChat, openrouter } from 'thinharness/providers'
import { scriptedProvider } from 'thinharness/testing'
import type { ProviderApi } from 'thinharness/testing'

/** An image of one dot. */
export const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII='

export const KEY = { apiKey: 'any', maxRetries: 0 }

const MODELS: Readonly<Record<ProviderApi, (baseUrl: string) => Model>> = {
  responses: (baseUrl) => openai('gpt-5.5', { ...KEY, baseUrl }),
  chat: (baseUrl) => openaiChat('gpt-4.1', { ...KEY, baseUrl }),
  openrouter: (baseUrl) => openrouter('x/y', { ...KEY, baseUrl }),
  messages: (baseUrl) => anthropic('claude-sonnet-5', { ...KEY, baseUrl }),
  gemini: (baseUrl) => gemini('gemini-3-pro', { ...KEY, baseUrl }),
}

export const APIS = Object.keys(MODELS) as ProviderApi[]

/** Continues a conversation of messages with one more request, which is checked by the published schema of its API. */
export async function expectAccepted(api: ProviderApi, messages: readonly object[]): Promise<void> {
  const history = fromMessages(messages)
  await using provider = await scriptedProvider()
  provider.says('Still a dot.')
  const harness = new Harness({ model: MODELS[api](provider.url[api]), builtinTools: [] })
  const result = await harness.run('And now?', { history })
  expect(result.text).toBe('Still a dot.')
  expect(result.transcript).toHaveLength(history.length + 2)
}

/** The content of each entry, in short. */
export function inShort(entry: TranscriptEntry): readonly string[] {
  if (entry.role === 'user') return entry.content.map((part) => (part.type === 'text' ? part.text : part.type))
  if (entry.role === 'assistant')
    return entry.parts.flatMap((part) => {
      if (part.type === 'tool_call') return [`${part.name} ${part.callId} ${part.arguments}`]
      return part.type === 'text' ? [part.text] : []
    })
  const [text = '', ...media] =
    typeof entry.content === 'string'
      ? [entry.content]
      : entry.content.map((part) => (part.type === 'text' ? part.text : part.type))
  const { content } = JSON.parse(text) as { content: string }
  return [entry.callId, entry.name, content, ...media, ...(entry.isError ? ['error'] : [])]
}
