import { describe, expect, test } from 'vitest'
import type { AssistantPart } from '#contracts/entry.js'
import { assistant, DIALECTS, encode, formatOf, result } from './wire.js'

describe('assistant messages of another provider', () => {
  const foreign = (data: object) => ({ provider: 'anthropic', data: data as never })

  test('RF-10 reasoning becomes text before the text, and encrypted or unknown reasoning is omitted', () => {
    const parts: AssistantPart[] = [
      { type: 'reasoning', text: 'One.', native: foreign({ type: 'thinking', signature: 's' }) },
      { type: 'reasoning', text: '', native: foreign({ type: 'redacted_thinking', data: 'x' }) },
      { type: 'reasoning', text: 'Two.' },
      { type: 'text', text: 'A' },
      { type: 'text', text: 'B' },
      { type: 'opaque', native: foreign({ type: 'server_tool_use' }) },
      { type: 'reasoning', text: 'Three.', native: foreign({ form: 'field', value: 'reasoning' }) },
      { type: 'text', text: 'C' },
    ]
    const content = [
      '<thinking>\nOne.\n</thinking>',
      '<thinking>\nTwo.\n</thinking>',
      'AB',
      '<thinking>\nThree.\n</thinking>',
      'C',
    ].join('\n\n')
    expect(encode([assistant(parts, 'anthropic')])).toEqual([{ role: 'assistant', content }])
  })

  test('each part is judged alone: native blocks stay next to foreign reasoning', () => {
    const own = { type: 'thinking', thinking: 'Hm' }
    const parts: AssistantPart[] = [
      { type: 'reasoning', text: 'One.' },
      { type: 'reasoning', text: 'Hm', native: { provider: 'here', data: { form: 'block', value: own } } },
      { type: 'text', text: 'A' },
    ]
    expect(encode([assistant(parts)])).toEqual([
      {
        role: 'assistant',
        content: [{ type: 'text', text: '<thinking>\nOne.\n</thinking>' }, own, { type: 'text', text: 'A' }],
      },
    ])
  })

  test('unknown data of this provider is ignored', () => {
    const parts: AssistantPart[] = [
      { type: 'reasoning', text: 'One.', native: { provider: 'here', data: { form: 'spell', value: {} } } },
      { type: 'reasoning', text: 'Two.', native: { provider: 'here', data: { form: 'field', value: 'content' } } },
      { type: 'opaque', native: { provider: 'here', data: null } },
      { type: 'opaque', native: { provider: 'here', data: { form: 'message', value: 'x' } } },
    ]
    expect(encode([assistant(parts)])).toEqual([
      { role: 'assistant', content: '<thinking>\nOne.\n</thinking>\n\n<thinking>\nTwo.\n</thinking>' },
    ])
  })

  const LONG = `toolu_${'x'.repeat(60)}`

  test.each<[keyof typeof DIALECTS, string, RegExp]>([
    ['compatible', LONG, /^call_[0-9a-f]{32}$/],
    ['openrouter', 'functions.look:0', /^functions\.look:0$/],
    ['openai', 'call_1', /^call_1$/],
    ['openai', LONG, /^call_[0-9a-f]{32}$/],
    ['mistral', 'aB3dE6gH9', /^aB3dE6gH9$/],
    ['mistral', 'call_1', /^[a-zA-Z0-9]{9}$/],
  ])(
    'RS-04 call ids of other providers have a form that the server accepts, the same in call and result: %s, %s',
    (dialect, id, pattern) => {
      const part: AssistantPart = { type: 'tool_call', callId: id, name: 'look', arguments: '{}' }
      const entries = [assistant([part], 'anthropic'), result(id, '{"ok":true}')]
      const [reply, answer] = encode(entries, formatOf(DIALECTS[dialect])) as unknown as [
        { readonly tool_calls: readonly [{ readonly id: string }] },
        { readonly tool_call_id: string },
      ]
      expect(reply.tool_calls[0].id).toMatch(pattern)
      expect(answer.tool_call_id).toBe(reply.tool_calls[0].id)
    },
  )

  test.each(['compatible', 'openrouter'] as const)('%s gets its own ids back, however long they are', (dialect) => {
    const format = formatOf(DIALECTS[dialect])
    const id = `chatcmpl-tool-${'0123456789abcdef'.repeat(2)}`
    const part: AssistantPart = { type: 'tool_call', callId: id, name: 'look', arguments: '{}' }
    const [reply, answer] = encode([assistant([part], 'here'), result(id, '{"ok":true}')], format)
    expect(reply).toMatchObject({ tool_calls: [{ id }] })
    expect(answer).toMatchObject({ tool_call_id: id })
  })

  test('translated ids do not collide', () => {
    const ids = Array.from({ length: 2000 }, (_, index) => `call_${index}`)
    for (const dialect of [DIALECTS.openai, DIALECTS.mistral]) {
      const long = ids.map((id) => `${id}${'-'.repeat(50)}`)
      const sent = encode(
        long.map((id) => result(id, 'x')),
        formatOf(dialect),
      )
      expect(new Set(sent.map((message) => message['tool_call_id'])).size).toBe(ids.length)
    }
  })

  test.each<[string, keyof typeof DIALECTS, string, string]>([
    ['an object', 'compatible', '{"x": 1}', '{"x": 1}'],
    ['cut', 'compatible', '{"x":', '{"arguments":"{\\"x\\":"}'],
    ['no object', 'compatible', '[1]', '{"arguments":"[1]"}'],
    ['empty', 'compatible', '', '{"arguments":""}'],
    ['cut, where any text is taken', 'openai', '{"x":', '{"x":'],
    ['empty, where any text is taken', 'openai', '', '{}'],
  ])('arguments: %s', (_name, dialect, given, sent) => {
    const part: AssistantPart = { type: 'tool_call', callId: 'a', name: 'multi_tool_use.parallel', arguments: given }
    expect(encode([assistant([part])], formatOf(DIALECTS[dialect]))).toMatchObject([
      { tool_calls: [{ function: { name: 'multi_tool_use_parallel', arguments: sent } }] },
    ])
  })
})
