import { expect, test } from 'vitest'
import { defineTool, Harness } from 'thinharness'
import type { History, JsonObject, Model } from 'thinharness'
import { anthropic, openai, openaiChat, openaiCompatible, openrouter } from 'thinharness/providers'
import type { ProviderOptions } from 'thinharness/providers'

const SECRET = 'c2lnbmF0dXJlLW9mLXRoaXMtc2VydmVy'

const CHAT_CALL = { id: 'call_a', type: 'function', function: { name: 'look', arguments: '{}' } }

function chatReply(message: JsonObject): JsonObject {
  return { id: 'x', model: 'm', choices: [{ index: 0, finish_reason: 'tool_calls', message }] }
}

/** A call of `look` with something that only its server can read, and how the API says that it is done. */
interface Wire {
  readonly make: (options: ProviderOptions & { readonly baseUrl: string }) => Model
  readonly calls: JsonObject
  readonly ends: JsonObject
}

const CHAT_END = chatReply({ role: 'assistant', content: 'Done.' })
const SIGNED_CALL = { ...CHAT_CALL, extra_content: { google: { thought_signature: SECRET } } }

const WIRES: Readonly<Record<string, Wire>> = {
  openai: {
    make: (options) => openai('gpt-5.5', options),
    calls: {
      id: 'r1',
      status: 'completed',
      output: [
        { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: SECRET },
        { type: 'function_call', id: 'fc_1', call_id: 'call_a', name: 'look', arguments: '{}', status: 'completed' },
      ],
    },
    ends: {
      id: 'r2',
      status: 'completed',
      output: [{ type: 'message', id: 'm', role: 'assistant', content: [{ type: 'output_text', text: 'Done.' }] }],
    },
  },
  anthropic: {
    make: (options) => anthropic('claude-sonnet-5', options),
    calls: {
      role: 'assistant',
      stop_reason: 'tool_use',
      content: [
        { type: 'thinking', thinking: 'I look.', signature: SECRET },
        { type: 'tool_use', id: 'toolu_a', name: 'look', input: {} },
      ],
    },
    ends: { role: 'assistant', stop_reason: 'end_turn', content: [{ type: 'text', text: 'Done.' }] },
  },
  openrouter: {
    make: (options) => openrouter('google/gemini', options),
    calls: chatReply({
      role: 'assistant',
      content: null,
      reasoning_details: [{ type: 'reasoning.encrypted', data: SECRET }],
      tool_calls: [CHAT_CALL],
    }),
    ends: CHAT_END,
  },
  openaiChat: {
    make: (options) => openaiChat('gpt-4.1', options),
    calls: chatReply({ role: 'assistant', content: null, tool_calls: [SIGNED_CALL] }),
    ends: CHAT_END,
  },
  openaiCompatible: {
    make: (options) => openaiCompatible('m', options),
    calls: chatReply({ role: 'assistant', content: null, tool_calls: [SIGNED_CALL] }),
    ends: CHAT_END,
  },
}

const look = defineTool({
  name: 'look',
  description: 'Looks.',
  parameters: { type: 'object', properties: {} },
  handler: async () => 'Found.',
})

/** A run at `baseUrl`: the bodies of its requests. */
async function requestsAt(wire: Wire, host: string, given: { readonly history?: unknown; readonly calls: boolean }) {
  const replies = given.calls ? [wire.calls, wire.ends] : [wire.ends]
  const bodies: string[] = []
  const fetch: typeof globalThis.fetch = async (_url, init) => {
    bodies.push(await new Response(init?.body).text())
    return Response.json(replies[bodies.length - 1])
  }
  const model = wire.make({ fetch, apiKey: 'any', baseUrl: `https://${host}/v1`, maxRetries: 0 })
  const harness = new Harness({ model, tools: [look], builtinTools: [] })
  const { history = null } = given as { readonly history?: History | null }
  const result = await harness.run('Go.', { history })
  return { bodies, state: result.resumeState }
}

test.each(Object.entries(WIRES))('what is a server’s own goes back to its host only: %s', async (_name, wire) => {
  const first = await requestsAt(wire, 'one.example', { calls: true })
  expect(first.bodies[1]).toContain(SECRET)
  const history = JSON.parse(JSON.stringify(first.state)) as unknown
  const [elsewhere] = (await requestsAt(wire, 'two.example', { history, calls: false })).bodies
  expect(elsewhere).toContain('Found.')
  expect(elsewhere).not.toContain(SECRET)
  const [again] = (await requestsAt(wire, 'one.example', { history, calls: false })).bodies
  expect(again).toContain(SECRET)
})
