import { describe, expect, test } from 'vitest'
import { scriptedProvider } from 'thinharness/testing'
import { post, WIRE_CASES } from '../support/wire-requests.js'
import type { WireCase } from '../support/wire-requests.js'

const [RESPONSES, CHAT, OPENROUTER, MESSAGES] = WIRE_CASES

/** Name, fields of the body, and what the refusal says. */
type Row = readonly [string, Readonly<Record<string, unknown>>, string]

const USER = { role: 'user', content: 'Hi.' }

async function refusalOf(each: WireCase | undefined, fields: Row[1]): Promise<unknown> {
  const provider = await scriptedProvider()
  try {
    const body = (await (await post(provider.says('Hi.'), each!, fields)).json()) as { error?: { message?: string } }
    return body.error?.message
  } finally {
    await provider.close()
  }
}

describe('chat completions reject', () => {
  const call = { id: 'c1', type: 'function', function: { name: 'read', arguments: '{}' } }
  const calling = { role: 'assistant', content: null, tool_calls: [call] }
  const result = { role: 'tool', tool_call_id: 'c1', content: 'A' }
  test.each<Row>([
    ['no model', { model: undefined }, 'you must provide a model parameter'],
    ['no messages', { messages: undefined }, "Missing required parameter: 'messages'."],
    ['messages of another type', { messages: 'Hi.' }, "Invalid type for 'messages': expected an array."],
    ['a message that is no object', { messages: ['Hi.'] }, "Invalid type for 'messages[0]': expected an object."],
    ['an unknown role', { messages: [{ ...USER, role: 'human' }] }, "Invalid value: 'human'."],
    ['a user without content', { messages: [{ role: 'user' }] }, "Invalid value for 'content'"],
    ['an empty reply', { messages: [USER, { role: 'assistant', content: null }] }, 'expected a string, got null'],
    ['a call without a result', { messages: [USER, calling, USER] }, 'did not have response messages: c1'],
    ['a call without a result at the end', { messages: [USER, calling] }, 'did not have response messages: c1'],
    ['a result without a call', { messages: [USER, result] }, 'must be a response to a preceeding message'],
    ['a result twice', { messages: [USER, calling, result, result] }, 'must be a response to a preceeding message'],
    ['a result too late', { messages: [USER, calling, USER, result] }, 'did not have response messages: c1'],
    ['a result without an id', { messages: [USER, calling, { ...result, tool_call_id: undefined }] }, 'tool_call_id'],
    [
      'a call id of 41 characters',
      { messages: [USER, { ...calling, tool_calls: [{ ...call, id: 'c'.repeat(41) }] }] },
      'string too long',
    ],
    [
      'arguments that are no text',
      { messages: [USER, { ...calling, tool_calls: [{ ...call, function: { name: 'read', arguments: {} } }] }] },
      "Invalid type for 'messages[1].tool_calls[0].function.arguments'",
    ],
    ['an empty list of calls', { messages: [USER, { ...calling, tool_calls: [] }] }, 'empty array'],
    ['an empty list of tools', { tools: [] }, "[] is too short - 'tools'"],
    ['a bad tool name', { tools: [{ type: 'function', function: { name: 'a b' } }] }, 'does not match pattern'],
    ['a choice without tools', { tools: undefined, tool_choice: 'auto' }, "'tool_choice' is only allowed"],
    [
      'a choice of a tool that is not there',
      { tool_choice: { type: 'function', function: { name: 'write' } } },
      "Tool choice 'write' not found",
    ],
  ])('%s', async (_name, fields, message) => {
    expect(await refusalOf(CHAT, fields)).toContain(message)
  })

  test('reasoning that is not sent back unchanged (openrouter)', async () => {
    const detail = { type: 'reasoning.text', text: 'Changed.', signature: 'x' }
    const messages = [USER, { role: 'assistant', content: 'Hm.', reasoning_details: [detail] }, USER]
    expect(await refusalOf(OPENROUTER, { messages })).toContain('Invalid `signature`')
  })
})

describe('Responses reject', () => {
  const call = { type: 'function_call', call_id: 'c1', name: 'read', arguments: '{}' }
  const result = { type: 'function_call_output', call_id: 'c1', output: 'A' }
  const reasoning = { type: 'reasoning', id: 'rs_1', summary: [] }
  test.each<Row>([
    ['no model', { model: undefined }, "Missing required parameter: 'model'."],
    ['no input', { input: undefined }, "Missing required parameter: 'input'."],
    ['an empty input', { input: [] }, "Missing required parameter: 'input'."],
    ['an unknown role', { input: [{ ...USER, role: 'human' }] }, "Invalid value: 'human'."],
    ['a call without a result', { input: [USER, call] }, 'No tool output found for function call c1.'],
    [
      'a result without a call',
      { input: [USER, result] },
      'No tool call found for function call output with call_id c1.',
    ],
    ['a result before its call', { input: [USER, result, call] }, 'No tool call found'],
    ['a result twice', { input: [USER, call, result, result] }, 'No tool call found'],
    ['a call id twice', { input: [USER, call, call, result] }, 'Duplicate function call id c1.'],
    ['a call without an id', { input: [USER, { ...call, call_id: undefined }] }, "Invalid type for 'input[1].call_id'"],
    [
      'arguments that are no text',
      { input: [USER, { ...call, arguments: {} }] },
      "Invalid type for 'input[1].arguments'",
    ],
    ['reasoning that it does not have', { input: [USER, reasoning, call, result] }, "Item with id 'rs_1' not found."],
    ['a reference that it does not have', { input: [{ type: 'item_reference', id: 'fc_1' }] }, "id 'fc_1' not found"],
    [
      'reasoning that was changed',
      { input: [USER, { ...reasoning, encrypted_content: 'gAAAAAx.eA' }, call, result] },
      'The encrypted content for item rs_1 could not be verified.',
    ],
    [
      'a reply that it does not have',
      { previous_response_id: 'resp_9' },
      "Previous response with id 'resp_9' not found.",
    ],
    [
      'a must without tools',
      { tools: undefined, tool_choice: 'required' },
      "'required' must be specified with 'tools'",
    ],
    [
      'a tool name twice',
      { tools: [1, 2].map(() => ({ type: 'function', name: 'read' })) },
      'Tool names must be unique',
    ],
  ])('%s', async (_name, fields, message) => {
    expect(await refusalOf(RESPONSES, fields)).toContain(message)
  })

  test('reasoning without the item that it led to', async () => {
    await using provider = await scriptedProvider()
    provider.says('Hm.', { reasoning: 'So.' })
    const include = ['reasoning.encrypted_content']
    const { output } = (await (await post(provider, RESPONSES!, { include })).json()) as { output: object[] }
    const input = [USER, output[0], USER]
    expect(await refusalOf(RESPONSES, { input, include })).toContain('without its required following item')
  })

  test('a reply that was not to be stored', async () => {
    const provider = await scriptedProvider()
    provider.says('Hm.')
    const { id } = (await (await post(provider, RESPONSES!, { store: false })).json()) as { id: string }
    expect((await post(provider, RESPONSES!, { previous_response_id: id })).status).toBe(400)
    await provider.close()
  })
})

describe('Messages reject', () => {
  const call = { type: 'tool_use', id: 't1', name: 'read', input: {} }
  const calling = { role: 'assistant', content: [call] }
  const result = { type: 'tool_result', tool_use_id: 't1', content: 'A' }
  const answering = { role: 'user', content: [result] }
  const mark = { type: 'text', text: 'x', cache_control: { type: 'ephemeral' } }
  const reply = (block: object) => ({ messages: [USER, { role: 'assistant', content: [block] }, USER] })
  test.each<Row>([
    ['no model', { model: undefined }, 'model: Field required'],
    ['no max_tokens', { max_tokens: undefined }, 'max_tokens: Field required'],
    ['no messages', { messages: undefined }, 'messages: Field required'],
    ['an empty list of messages', { messages: [] }, 'at least one message is required'],
    [
      'a system role',
      { messages: [{ ...USER, role: 'system' }] },
      "messages.0.role: Input should be 'user' or 'assistant'",
    ],
    ['a reply at the start', { messages: [calling, answering] }, 'first message must use the "user" role'],
    ['an empty text', { messages: [{ role: 'user', content: '' }] }, 'text content blocks must be non-empty'],
    ['an empty content', { messages: [{ role: 'user', content: [] }] }, 'must have non-empty content'],
    ['no content', { messages: [{ role: 'user' }] }, 'messages.0.content: Field required'],
    [
      'a call without a result',
      { messages: [USER, calling, USER] },
      'messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t1.',
    ],
    ['a call without a result at the end', { messages: [USER, calling] }, 'messages.1: `tool_use` ids were found'],
    [
      'a result behind other content',
      { messages: [USER, calling, { role: 'user', content: [{ type: 'text', text: 'So:' }, result] }] },
      'messages.1: `tool_use` ids were found without',
    ],
    [
      'a result without a call',
      { messages: [USER, answering] },
      'messages.1.content.0: unexpected `tool_use_id` found in `tool_result` blocks: t1.',
    ],
    [
      'a result once more behind other content',
      { messages: [USER, calling, { role: 'user', content: [result, { type: 'text', text: 'So:' }, result] }] },
      'messages.2.content.2: unexpected `tool_use_id`',
    ],
    [
      'a result twice',
      { messages: [USER, calling, { role: 'user', content: [result, result] }] },
      'each tool_use must have a single result.',
    ],
    [
      'a call id twice',
      { messages: [USER, calling, answering, calling, answering] },
      'messages.3.content.0: `tool_use` ids must be unique',
    ],
    ['a bad call id', reply({ ...call, id: 'a.b' }), "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"],
    ['an input that is no object', reply({ ...call, input: '{}' }), 'Input should be a valid dictionary'],
    [
      'thinking without its signature',
      reply({ type: 'thinking', thinking: 'x' }),
      'thinking.signature: Field required',
    ],
    ['thinking that was changed', reply({ type: 'thinking', thinking: 'x', signature: 'y' }), 'Invalid `signature`'],
    ['hidden thinking that was changed', reply({ type: 'redacted_thinking', data: 'x' }), 'Invalid `data`'],
    ['a bad tool name', { tools: [{ name: 'a b', input_schema: { type: 'object' } }] }, 'tools.0.custom.name'],
    ['a tool without a schema', { tools: [{ name: 'read' }] }, "input_schema.type: Input should be 'object'"],
    [
      'a choice without tools',
      { tools: undefined, tool_choice: { type: 'any' } },
      'only be specified while providing tools',
    ],
    ['five cache marks', { messages: [{ role: 'user', content: [1, 2, 3, 4, 5].map(() => mark) }] }, 'Found 5.'],
  ])('%s', async (_name, fields, message) => {
    expect(await refusalOf(MESSAGES, fields)).toContain(message)
  })

  test.each([
    ['a key', { 'anthropic-version': '2023-06-01' }, {}, 401, 'x-api-key header is required'],
    ['a version', { 'x-api-key': 'any' }, {}, 400, 'anthropic-version: header is required'],
    [
      'what the newer version has not',
      { 'x-api-key': 'any', 'anthropic-version': '2026-10-21' },
      { temperature: 0 },
      400,
      'temperature: Extra inputs are not permitted',
    ],
  ])('a request for %s', async (_name, headers, fields, status, message) => {
    const provider = await scriptedProvider()
    const response = await post(provider, { ...MESSAGES!, headers }, fields)
    expect([response.status, await response.text()]).toEqual([status, expect.stringContaining(message)])
    await provider.close()
  })
})

test('Responses require a key', async () => {
  const provider = await scriptedProvider()
  expect((await post(provider, { ...RESPONSES!, headers: {} })).status).toBe(401)
  await provider.close()
})
