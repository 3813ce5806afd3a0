import { expect, test } from 'vitest'
import { scriptedProvider } from 'thinharness/testing'
import type { ScriptedProvider } from 'thinharness/testing'
import { post, WIRE_CASES } from '../support/wire-requests.js'

const [RESPONSES, CHAT, , MESSAGES] = WIRE_CASES
const say = (content: unknown) => ({ role: 'user', content })
const mark = { cache_control: { type: 'ephemeral' } }
const marked = (text: string) => say([{ type: 'text', text, ...mark }])
const plain = (text: string) => say([{ type: 'text', text }])
const reply = { role: 'assistant', content: 'Yes.' }

/** Four characters are a token; a mark costs nothing. */
const tokens = (...members: unknown[]) =>
  members.reduce<number>((sum, member) => sum + Math.ceil(JSON.stringify(member).length / 4), 0)

async function usageOf(provider: ScriptedProvider, api: number, fields: object): Promise<Record<string, unknown>> {
  const response = await post(provider, WIRE_CASES[api]!, { tools: undefined, ...fields })
  const { usage } = (await response.json()) as { usage: Record<string, unknown> }
  return usage
}

test('the beginning of an earlier request is read from the cache, without a mark at OpenAI', async () => {
  await using provider = await scriptedProvider()
  provider.always('Yes.')
  const chat = WIRE_CASES.indexOf(CHAT!)
  const cached = async (model: string, messages: object[]) => {
    const usage = await usageOf(provider, chat, { model, messages })
    return [usage['prompt_tokens'], (usage['prompt_tokens_details'] as { cached_tokens: number }).cached_tokens]
  }
  const first = say('x'.repeat(400))
  const [also, other] = [say('And?'), say('Otherwise!')]
  expect(await cached('m', [first])).toEqual([tokens(first), 0])
  expect(await cached('m', [first, reply, also])).toEqual([tokens(first, reply, also), tokens(first)])
  expect(await cached('m', [first, reply, other])).toEqual([tokens(first, reply, other), tokens(first, reply)])
  expect(await cached('m', [other, reply, also])).toEqual([tokens(other, reply, also), 0])
  expect(await cached('another', [first])).toEqual([tokens(first), 0])
})

test('Responses include the conversation that a request continues', async () => {
  await using provider = await scriptedProvider()
  provider.says('Yes.').says('No.')
  const body = { tools: undefined, input: 'x'.repeat(400) }
  const first = (await (await post(provider, RESPONSES!, body)).json()) as {
    id: string
    usage: { input_tokens: number }
  }
  const usage = await usageOf(provider, 0, { previous_response_id: first.id, input: 'And?' })
  expect(usage['input_tokens']).toBeGreaterThan(first.usage.input_tokens)
})

test('Anthropic reads and writes up to the last mark; marks that move break nothing', async () => {
  await using provider = await scriptedProvider()
  provider.always('Yes.')
  const messages = WIRE_CASES.indexOf(MESSAGES!)
  const prices = async (fields: object) => {
    const usage = await usageOf(provider, messages, fields)
    return ['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'].map((field) => usage[field])
  }
  const first = 'x'.repeat(400)
  const [one, more] = [tokens(plain(first)), tokens(reply, plain('And?'))]
  expect(await prices({ messages: [plain(first)] })).toEqual([one, 0, 0])
  expect(await prices({ messages: [marked(first)] })).toEqual([0, 0, one])
  expect(await prices({ messages: [plain(first), reply, marked('And?')] })).toEqual([0, one, more])
  expect(await prices({ messages: [marked(first), reply, plain('And?')] })).toEqual([more, one, 0])
  expect(await prices({ messages: [plain(first), reply, plain('And?')], ...mark })).toEqual([0, one + more, 0])
  expect(await prices({ system: 'Be brief.', messages: [marked(first)] })).toEqual([0, 0, tokens('Be brief.') + one])
})

test('a configured price wins over the estimate', async () => {
  await using provider = await scriptedProvider()
  provider.says('a', { usage: { outputTokens: 7 } }).says('b', {
    usage: { inputTokens: 9, outputTokens: 8, cacheReadTokens: 3, cacheWriteTokens: 2, reasoningTokens: null },
  })
  expect(await usageOf(provider, 3, { messages: [plain('x')] })).toMatchObject({ output_tokens: 7 })
  expect(await usageOf(provider, 3, { messages: [plain('x')] })).toEqual({
    input_tokens: 4,
    cache_creation_input_tokens: 2,
    cache_read_input_tokens: 3,
    output_tokens: 8,
    service_tier: 'standard',
  })
})
