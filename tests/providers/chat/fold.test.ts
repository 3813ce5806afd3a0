import { describe, expect, test } from 'vitest'
import type { WireChunk } from '#providers/http/wire-format.js'
import { chunksOf, hear } from './wire.js'

describe('RF-03 pieces of reasoning are joined', () => {
  test('details with one index are one, with its signature last; the accompanying plain text is emitted once', () => {
    const piece = (changes: object) => ({ type: 'reasoning.text', format: 'f', index: 0, ...changes })
    const { reply, deltas } = hear(
      chunksOf([
        { reasoning: 'Let', reasoning_details: [piece({ text: 'Let' })] },
        { reasoning: ' me', reasoning_details: [piece({ text: ' me', signature: null })] },
        { reasoning_details: [piece({ signature: 'sig' })] },
        { reasoning_details: [{ type: 'reasoning.encrypted', data: 'x', id: 'r1', index: 0 }] },
        { reasoning_details: [{ type: 'reasoning.encrypted', data: 'y', id: 'r2', index: 0 }] },
        { reasoning_details: [{ type: 'reasoning.summary', summary: 'A', index: 1 }] },
        { reasoning_details: [{ type: 'reasoning.summary', summary: 'B', index: 1 }] },
      ]),
    )
    const detail = (text: string, value: object) => {
      return { type: 'reasoning', text, native: { provider: 'here', data: { form: 'detail', value } } }
    }
    expect(reply.parts).toEqual([
      detail('Let me', { type: 'reasoning.text', format: 'f', index: 0, signature: 'sig', text: 'Let me' }),
      detail('', { type: 'reasoning.encrypted', data: 'x', id: 'r1', index: 0 }),
      detail('', { type: 'reasoning.encrypted', data: 'y', id: 'r2', index: 0 }),
      detail('AB', { type: 'reasoning.summary', index: 1, summary: 'AB' }),
    ])
    expect(deltas.map(({ kind, text }) => [kind, text])).toEqual([
      ['reasoning_delta', 'Let'],
      ['reasoning_delta', ' me'],
      ['reasoning_delta', 'A'],
      ['reasoning_delta', 'B'],
    ])
  })

  test('details without an index, or with a late id, are one unless something distinguishes them', () => {
    const piece = (changes: object) => ({ reasoning_details: [{ type: 'reasoning.text', ...changes }] })
    const { reply } = hear(
      chunksOf([
        piece({ text: 'A' }),
        piece({ text: 'B', index: null, id: 'r1' }),
        piece({ text: 'C', id: 'r1' }),
        piece({ text: 'D' }),
        piece({ text: 'E', id: 'r2' }),
      ]),
    )
    expect(reply.parts.map((part) => (part.type === 'reasoning' ? part.text : null))).toEqual(['ABCD', 'E'])
  })

  test('blocks of thinking and text, then plain text, form a list in their order', () => {
    const { reply, deltas } = hear(
      chunksOf([
        { content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'Hm' }] }] },
        { content: [{ type: 'thinking', thinking: [{ type: 'text', text: ', yes' }], closed: true }] },
        { content: [{ type: 'text', text: 'So' }] },
        { content: ' it' },
        { content: [{ type: 'reference', reference_ids: [2] }] },
        { content: ' is.' },
        { content: [{ type: 'thinking', thinking: 'Sure?' }] },
      ]),
    )
    const block = (value: object) => ({ provider: 'here', data: { form: 'block', value } })
    expect(reply.parts).toEqual([
      {
        type: 'reasoning',
        text: 'Hm, yes',
        native: block({ type: 'thinking', closed: true, thinking: [{ type: 'text', text: 'Hm, yes' }] }),
      },
      { type: 'text', text: 'So it' },
      { type: 'opaque', native: block({ type: 'reference', reference_ids: [2] }) },
      { type: 'text', text: ' is.' },
      { type: 'reasoning', text: 'Sure?', native: block({ type: 'thinking', thinking: 'Sure?' }) },
    ])
    expect(deltas.map(({ kind, text }) => [kind, text])).toEqual([
      ['reasoning_delta', 'Hm'],
      ['reasoning_delta', ', yes'],
      ['text_delta', 'So'],
      ['text_delta', ' it'],
      ['text_delta', ' is.'],
      ['reasoning_delta', 'Sure?'],
    ])
  })
})

test('a refusal, lists and objects of a stream are collected; stray words next to them are not part of the answer', () => {
  const { reply, deltas } = hear(
    chunksOf([
      { role: 'assistant', refusal: 'I ', channel: 'final', token_id: 3 },
      { refusal: 'cannot.', annotations: [{ type: 'url_citation', n: 1 }] },
      { annotations: [{ type: 'url_citation', n: 2 }], audio: { id: 'a', data: 'AA', transcript: 'I' } },
      { audio: { id: 'a', data: 'BB', transcript: ' cannot.' } },
      { extra: { list: [1], none: 'x', same: 's', id: 'x1' } },
      { extra: { list: [2], none: null, same: 's', id: null, more: { n: 1 } } },
      { function_call: null, tool_calls: null, refusal: null, audio: null, content: null, reasoning: null },
    ]),
  )
  const field = (value: object) => ({ type: 'opaque', native: { provider: 'here', data: { form: 'message', value } } })
  expect(reply.parts).toEqual([
    field({ refusal: 'I cannot.' }),
    field({
      annotations: [
        { type: 'url_citation', n: 1 },
        { type: 'url_citation', n: 2 },
      ],
    }),
    field({ audio: { id: 'a', data: 'AABB', transcript: 'I cannot.' } }),
    field({ extra: { list: [1, 2], none: 'x', same: 's', id: 'x1', more: { n: 1 } } }),
  ])
  expect(reply.finishReason).toBe('refusal')
  expect(deltas).toEqual([])
})

describe('the frame of a stream', () => {
  const chunk = (data: unknown, event: string | null = null): WireChunk => ({ event, data })
  const text = chunk({ choices: [{ index: 0, delta: { content: 'Hi' }, finish_reason: null }] })
  const end = chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
  const done = chunk(null)
  const usage = { prompt_tokens: 3, completion_tokens: 5 }

  test.each<[string, WireChunk[]]>([
    ['in a chunk without choices', [text, end, chunk({ choices: [], usage }), done]],
    ['in the last chunk', [text, chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage }), done]],
    [
      'in every chunk, the last counts',
      [chunk({ choices: [], usage: { prompt_tokens: 1 } }), text, end, chunk({ usage })],
    ],
    [
      'in `x_groq`',
      [text, chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], x_groq: { usage } }), done],
    ],
    ['in the choice', [text, chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop', usage }] }), done]],
    [
      'before an `x_groq` without it',
      [chunk({ choices: [], usage }), text, chunk({ choices: [], x_groq: { id: 'x' } }), end],
    ],
    ['before `null`', [chunk({ choices: [], usage }), text, chunk({ choices: [], usage: null }), end]],
  ])('PR-20 usage of a stream is read: %s', (_name, chunks) => {
    expect(hear(chunks).reply.usage).toMatchObject({ inputTokens: 3, outputTokens: 5 })
  })

  test.each<[string, WireChunk[]]>([
    ['nothing', []],
    ['no finish reason and no [DONE]', [text]],
    ['only [DONE]', [done]],
    ['[DONE] without any choice', [chunk({ choices: [], usage }), done]],
  ])('a stream with %s is truncated and retryable', (_name, chunks) => {
    expect(() => hear(chunks)).toThrow(expect.objectContaining({ code: 'provider_error', retryable: true }))
  })

  test.each<[string, WireChunk[], string]>([
    ['a finish reason', [text, end], 'stop'],
    ['[DONE]', [text, done], 'other'],
  ])('%s alone is an end', (_name, chunks, reason) => {
    expect(hear(chunks).reply).toMatchObject({ parts: [{ type: 'text', text: 'Hi' }], finishReason: reason })
  })

  test.each<[string, WireChunk, object]>([
    ['beside choices', chunk({ error: { message: 'down', code: 502 }, choices: [] }), { status: 502, retryable: true }],
    [
      'without choices',
      chunk({ error: { message: 'down', type: 'server_error' } }),
      { message: 'down (server_error)' },
    ],
    ['in a list', chunk([{ error: { message: 'down', code: 503 } }]), { status: 503 }],
    [
      'in a choice',
      chunk({ choices: [{ index: 0, error: { message: 'down', code: 429 }, delta: {} }] }),
      { status: 429 },
    ],
    ['as an event', chunk({ message: 'down' }, 'error'), { message: 'down' }],
    ['as an event of plain words', chunk('down', 'error'), { message: 'down' }],
    ['in `x_groq`', chunk({ choices: [], x_groq: { error: 'no tool' } }), { message: 'no tool' }],
    ['as a word', chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'error' }] }), { retryable: true }],
  ])('an error %s ends the stream, whatever came before', (_name, error, expected) => {
    expect(() => hear([text, error, done])).toThrow(expect.objectContaining({ code: 'provider_error', ...expected }))
  })

  test('PR-22 choices other than the first, invalid chunks and null deltas are skipped', () => {
    const other = chunk({ choices: [{ index: 1, delta: { content: 'No' }, finish_reason: 'length' }] })
    const odd = [chunk(7), chunk('x'), chunk({}), chunk({ choices: [null, { index: 0, delta: null }] })]
    expect(hear([...odd, other, text, other, end, done]).reply).toMatchObject({
      parts: [{ type: 'text', text: 'Hi' }],
      finishReason: 'stop',
    })
  })

  test('a message in place of a delta counts, one that repeats the deltas does not', () => {
    const summary = chunk({ choices: [{ index: 0, message: { content: 'Hi' }, finish_reason: 'stop' }] })
    expect(hear([summary]).reply.parts).toEqual([{ type: 'text', text: 'Hi' }])
    expect(hear([text, summary]).reply.parts).toEqual([{ type: 'text', text: 'Hi' }])
  })

  test('the reply that the chunks add up to is kept', () => {
    const first = chunk({ id: '', model: '', choices: [], prompt_filter_results: [{ prompt_index: 0 }] })
    const second = chunk({ id: 'r1', created: 7, object: 'chat.completion.chunk', choices: [] })
    const third = chunk({ id: 'r1', model: 'm1', choices: [] })
    const { reply } = hear([
      first,
      second,
      third,
      chunk({ id: 'r2', model: 'm2', choices: [] }),
      text,
      end,
      chunk({ choices: [], usage }),
      done,
    ])
    expect(reply.raw).toEqual({
      id: 'r1',
      model: 'm1',
      created: 7,
      prompt_filter_results: [{ prompt_index: 0 }],
      object: 'chat.completion',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
      usage,
    })
    expect(reply).toMatchObject({ responseId: 'r1', responseModel: 'm1' })
  })
})
