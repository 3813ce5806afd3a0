import OpenAI from 'openai'
import { expect, test } from 'vitest'
import { Harness } from 'thinharness'
import type { Model } from 'thinharness'
import { anthropic, openai, openaiChat, openaiCompatible, openrouter } from 'thinharness/providers'
import type { ProviderOptions } from 'thinharness/providers'
import { errorOf } from './support.js'

type Events = readonly object[]

const CHAT: Events = [
  { id: 'x', choices: [{ index: 0, delta: { role: 'assistant', content: 'Done.' }, finish_reason: null }] },
  { id: 'x', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
]
const MESSAGES: Events = [
  {
    type: 'message_start',
    message: { id: 'm', role: 'assistant', content: [], usage: { input_tokens: 1, output_tokens: 1 } },
  },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Done.' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } },
]
const MESSAGE = { type: 'message', id: 'm', role: 'assistant', content: [{ type: 'output_text', text: 'Done.' }] }
const RESPONSES: Events = [
  { type: 'response.created', response: { id: 'r', status: 'in_progress', output: [] } },
  { type: 'response.completed', response: { id: 'r', status: 'completed', output: [MESSAGE] } },
]

const WIRES: Readonly<Record<string, readonly [(options: ProviderOptions) => Model, Events]>> = {
  openai: [(options) => openai('gpt-5.5', options), RESPONSES],
  openaiChat: [(options) => openaiChat('gpt-4.1', options), CHAT],
  openrouter: [(options) => openrouter('x/y', options), CHAT],
  openaiCompatible: [(options) => openaiCompatible('m', { ...options, baseUrl: 'https://any.example/v1' }), CHAT],
  anthropic: [(options) => anthropic('claude-sonnet-5', options), MESSAGES],
  'an official client': [
    ({ fetch, apiKey: _, ...options }) =>
      openaiChat('gpt-4.1', {
        ...options,
        client: new OpenAI({ apiKey: 'k', maxRetries: 0, ...(fetch && { fetch }) }),
      }),
    CHAT,
  ],
}

/** Sends `events` and then nothing: the stream stays open. */
function stayingOpen(events: Events): typeof globalThis.fetch {
  const bytes = new TextEncoder().encode(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''))
  return () => {
    const body = new ReadableStream({ start: (controller) => controller.enqueue(bytes) })
    return Promise.resolve(new Response(body, { headers: { 'content-type': 'text/event-stream' } }))
  }
}

function asked(make: (options: ProviderOptions) => Model, events: Events) {
  const model = make({ apiKey: 'k', fetch: stayingOpen(events), maxRetries: 0, timeouts: { idleMs: 60 } })
  return new Harness({ model, builtinTools: [] }).stream('Go.').result
}

test.each(Object.entries(WIRES))(
  'a stream that has told how its reply ended and stays open is complete; one that has not is an error: %s',
  async (_name, [make, events]) => {
    expect((await asked(make, events)).text).toBe('Done.')
    expect(await errorOf(asked(make, events.slice(0, -1)))).toMatchObject({
      code: 'provider_error',
      failure: 'timeout',
    })
  },
)
