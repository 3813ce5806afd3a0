import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { describe, expect, test } from 'vitest'
import { scriptedProvider } from 'thinharness/testing'
import type { ScriptedProvider } from 'thinharness/testing'
import { collect } from '../support/collect.js'

const READ = { type: 'object', properties: { path: { type: 'string' } } } as const

function openaiClient(provider: ScriptedProvider): OpenAI {
  return new OpenAI({ apiKey: 'any', baseURL: provider.url.chat, maxRetries: 0 })
}

function anthropicClient(provider: ScriptedProvider): Anthropic {
  return new Anthropic({ apiKey: 'any', baseURL: provider.url.messages, maxRetries: 0 })
}

/** The same two lines for every client. */
async function twoLines(): Promise<ScriptedProvider> {
  const provider = await scriptedProvider()
  return provider
    .calls('read', { path: 'a.txt' }, { text: 'Let me look.', reasoning: 'A file.' })
    .says('Done, all of it.')
}

async function gathered<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const all = await collect(stream)
  return all
}

describe('the official client of OpenAI', () => {
  const responses = {
    model: 'gpt-5.5',
    include: ['reasoning.encrypted_content' as const],
    tools: [{ type: 'function' as const, name: 'read', parameters: READ, strict: false }],
    input: 'Look into a.txt.',
  }

  test('reads whole Responses, and continues from one by its id', async () => {
    await using provider = await twoLines()
    const { responses: api } = openaiClient(provider)
    const first = await api.create(responses)
    expect(first).toMatchObject({ status: 'completed', output_text: 'Let me look.', model: 'gpt-5.5' })
    expect(first.output.map((item) => item.type)).toEqual(['reasoning', 'message', 'function_call'])
    const call = first.output.find((item) => item.type === 'function_call')!
    expect(call).toMatchObject({ name: 'read', arguments: '{"path":"a.txt"}' })
    const output = { type: 'function_call_output' as const, call_id: call.call_id, output: 'A' }
    const second = await api.create({ ...responses, previous_response_id: first.id, input: [output] })
    expect(second.output_text).toBe('Done, all of it.')
  })

  test('reads streamed Responses, whose events add up to the last one', async () => {
    await using provider = await twoLines()
    const { responses: api } = openaiClient(provider)
    const events = await gathered(await api.create({ ...responses, stream: true }))
    expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, index) => index))
    const joined = (type: string) =>
      events.flatMap((each) => (each.type === type && 'delta' in each ? [each.delta] : []))
    expect(joined('response.output_text.delta').join('')).toBe('Let me look.')
    expect(joined('response.reasoning_summary_text.delta').join('')).toBe('A file.')
    expect(joined('response.function_call_arguments.delta').join('')).toBe('{"path":"a.txt"}')
    const last = events.at(-1)!
    if (last.type !== 'response.completed') throw new Error(`Expected a completed response, got ${last.type}.`)
    const done = events.flatMap((event) => (event.type === 'response.output_item.done' ? [event.item] : []))
    expect(last.response.output).toEqual(done)
    const stream = api.stream({ ...responses, input: [{ role: 'user', content: 'And?' }] })
    expect((await stream.finalResponse()).output_text).toBe('Done, all of it.')
  })

  const chat = {
    model: 'gpt-5.5',
    tools: [{ type: 'function' as const, function: { name: 'read', parameters: READ } }],
    messages: [{ role: 'user' as const, content: 'Look into a.txt.' }],
  }

  test('reads chat completions, and sends them back', async () => {
    await using provider = await twoLines()
    const { completions } = openaiClient(provider).chat
    const first = await completions.create(chat)
    const { message, finish_reason } = first.choices[0]!
    expect(finish_reason).toBe('tool_calls')
    expect(message).toEqual({
      role: 'assistant',
      content: 'Let me look.',
      refusal: null,
      reasoning_content: 'A file.',
      tool_calls: [
        {
          id: 'call_000000000000000000000001',
          type: 'function',
          function: { name: 'read', arguments: '{"path":"a.txt"}' },
        },
      ],
    })
    const result = { role: 'tool' as const, tool_call_id: message.tool_calls![0]!.id, content: 'A' }
    const second = await completions.create({ ...chat, messages: [...chat.messages, message, result] })
    expect(second.choices[0]?.message.content).toBe('Done, all of it.')
    expect(second.usage?.prompt_tokens_details?.cached_tokens).toBe(first.usage?.prompt_tokens)
  })

  test('reads streamed chat completions, with usage if requested', async () => {
    await using provider = await twoLines()
    const { completions } = openaiClient(provider).chat
    const runner = completions.stream({ ...chat, stream_options: { include_usage: true } })
    const final = await runner.finalChatCompletion()
    expect(final.choices[0]).toMatchObject({
      finish_reason: 'tool_calls',
      message: { content: 'Let me look.', tool_calls: [{ function: { name: 'read', arguments: '{"path":"a.txt"}' } }] },
    })
    expect(final.usage).toMatchObject({ completion_tokens: 10, completion_tokens_details: { reasoning_tokens: 2 } })
    const chunks = await gathered(await completions.create({ ...chat, stream: true }))
    expect(chunks.every((chunk) => !('usage' in chunk))).toBe(true)
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toBe('Done, all of it.')
  })

  test('reports errors in its own form', async () => {
    await using provider = await scriptedProvider()
    provider
      .fails(429, { headers: { 'retry-after': '7' } })
      .fails(500, { message: 'Broken.' })
      .breaks('error')
    const client = openaiClient(provider)
    await expect(client.chat.completions.create(chat)).rejects.toMatchObject({
      status: 429,
      code: 'rate_limit_exceeded',
      type: 'requests',
    })
    await expect(client.responses.create(responses)).rejects.toMatchObject({ status: 500, message: '500 Broken.' })
    const stream = await client.chat.completions.create({ ...chat, stream: true })
    await expect(gathered(stream)).rejects.toThrow('This is a scripted error in a reply.')
  })
})

describe('the official client of Anthropic', () => {
  const request = {
    model: 'claude-sonnet-5',
    max_tokens: 100,
    cache_control: { type: 'ephemeral' as const },
    tools: [{ name: 'read', input_schema: READ }],
    messages: [{ role: 'user' as const, content: 'Look into a.txt.' }],
  }

  test('reads messages, and sends them back', async () => {
    await using provider = await twoLines()
    const { messages } = anthropicClient(provider)
    const first = await messages.create(request)
    expect(first).toMatchObject({ type: 'message', role: 'assistant', stop_reason: 'tool_use' })
    expect(first.content.map((block) => block.type)).toEqual(['thinking', 'text', 'tool_use'])
    const call = first.content.find((block) => block.type === 'tool_use')!
    expect(call.input).toEqual({ path: 'a.txt' })
    const result = { type: 'tool_result' as const, tool_use_id: call.id, content: 'A' }
    const conversation = [
      ...request.messages,
      { role: 'assistant' as const, content: first.content },
      { role: 'user' as const, content: [result] },
    ]
    const second = await messages.create({ ...request, messages: conversation })
    expect(second.content).toMatchObject([{ type: 'text', text: 'Done, all of it.' }])
    expect(first.usage).toMatchObject({ input_tokens: 0, cache_read_input_tokens: 0 })
    expect(second.usage.cache_read_input_tokens).toBe(first.usage.cache_creation_input_tokens)
  })

  test('reads streamed messages, whose events add up to the same message', async () => {
    await using streamed = await twoLines()
    await using whole = await twoLines()
    const { parsed_output: parsed, ...added } = await anthropicClient(streamed).messages.stream(request).finalMessage()
    const sent = await anthropicClient(whole).messages.create(request)
    expect(JSON.parse(JSON.stringify(added))).toEqual(JSON.parse(JSON.stringify(sent)))
    expect(parsed).toBeNull()
    const raw = await gathered(await anthropicClient(streamed).messages.create({ ...request, stream: true }))
    expect(raw.at(-1)?.type).toBe('message_stop')
    await anthropicClient(whole).messages.create(request)
  })

  test('reports errors in its own form', async () => {
    await using provider = await scriptedProvider()
    provider.fails(529).breaks('error', { reply: 'One two.' })
    const { messages } = anthropicClient(provider)
    await expect(messages.create(request)).rejects.toMatchObject({
      status: 529,
      error: { type: 'error', error: { type: 'overloaded_error' } },
    })
    await expect(gathered(await messages.create({ ...request, stream: true }))).rejects.toThrow(/Overloaded|scripted/)
  })
})
