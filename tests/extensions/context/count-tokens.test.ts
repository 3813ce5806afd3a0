import { describe, expect, test } from 'vitest'
import type { Model, TranscriptEntry } from 'thinharness'
import { countTokens } from 'thinharness/context'
import { anthropic, openai, openaiChat } from 'thinharness/providers'
import { lookingFor, windowedModel } from './windowed-model.js'
import { harnessOf, tool } from '../../harness/support.js'
import { NO_TOKENS } from '#contracts/entry.js'

const text = 'The quick brown fox jumps over the lazy dog. '.repeat(20)

describe('counting tokens', () => {
  test.each<[string, (fetch: typeof globalThis.fetch) => Model, string, readonly string[]]>([
    [
      'Anthropic',
      (fetch) => anthropic('claude-sonnet-5', { apiKey: 'k', fetch }),
      '/v1/messages/count_tokens',
      ['messages', 'model', 'system', 'tools'],
    ],
    [
      'OpenAI',
      (fetch) => openai('gpt-5.5', { apiKey: 'k', fetch }),
      '/responses/input_tokens',
      ['input', 'instructions', 'model', 'tools'],
    ],
  ])('XC-27 by the counter of the provider: %s', async (_name, modelWith, path, fields) => {
    const sent: { path: string; body: object }[] = []
    const fetch: typeof globalThis.fetch = (url, init) => {
      const body = JSON.parse(new TextDecoder().decode(init?.body as Uint8Array)) as object
      sent.push({ path: String(url instanceof Request ? url.url : url), body })
      return Promise.resolve(Response.json({ input_tokens: 77 }))
    }
    const tools = [{ name: 'look', description: 'Looks.', parameters: { type: 'object' } }]
    const counted = await countTokens(modelWith(fetch), text, { instructions: 'Be short.', tools })
    expect(counted).toEqual({ tokens: 77, by: 'provider' })
    expect(sent[0]?.path.endsWith(path)).toBe(true)
    expect(Object.keys(sent[0]?.body ?? {})).toEqual(expect.arrayContaining([...fields]))
    expect(sent[0]?.body).not.toHaveProperty('max_tokens')
  })

  test('XC-28 a counter that fails is passed over; `ask: false` sends nothing', async () => {
    let asked = 0
    const fetch: typeof globalThis.fetch = () => {
      asked += 1
      return Promise.resolve(Response.json({ error: { message: 'No such path.' } }, { status: 404 }))
    }
    const model = anthropic('claude-sonnet-5', { apiKey: 'k', fetch })
    expect(await countTokens(model, text)).toMatchObject({ by: 'estimate' })
    expect(asked).toBe(1)
    expect(await countTokens(model, text, { ask: false })).toMatchObject({ by: 'estimate' })
    expect(asked).toBe(1)
  })

  test('XC-29 by a tokenizer for models of OpenAI without a counter', async () => {
    const model = openaiChat('gpt-4.1', { apiKey: 'k' })
    const { tokens, by } = await countTokens(model, text)
    expect(by).toBe('tokenizer')
    expect(tokens).toBeGreaterThan(195)
    expect(tokens).toBeLessThan(215)
    expect((await countTokens(model, 'A mark: <|endoftext|>')).tokens).toBeGreaterThan(5)
  })

  test('XC-30 else as an estimate, corrected by the usage that the provider has reported', async () => {
    const model = windowedModel({ window: 1_000_000, charsPerToken: 2.5, reply: lookingFor(12) })
    const { transcript } = await harnessOf({ model, tools: [tool('look', () => 'star '.repeat(400))] }).run('Go.')
    const known = transcript.slice(0, -1)
    const last = transcript.at(-1) as TranscriptEntry & { role: 'assistant' }
    const actual = last.usage.inputTokens ?? 0
    const { tokens, by } = await countTokens(model, known)
    expect(by).toBe('estimate')
    expect(Math.abs(tokens / actual - 1)).toBeLessThan(0.05)
    const blind = await countTokens(
      model,
      known.map((entry) =>
        entry.role === 'assistant' ? { ...entry, usage: { ...entry.usage, inputTokens: null } } : entry,
      ),
    )
    expect(Math.abs(blind.tokens / actual - 1)).toBeGreaterThan(0.2)
  })

  test.each([
    ['dense', 'Это предложение написано кириллицей. '.repeat(2000), 'Ещё одно предложение. '.repeat(2000), 0.25],
    ['short', 'Go.', 'And now?', 0.3],
  ])(
    'XC-55 from the length that the provider has reported: a %s conversation',
    async (_name, first, second, perChar) => {
      const at = '2026-11-24T00:00:00.000Z'
      const say = (id: string, said: string): TranscriptEntry => ({
        ...{ id, at, role: 'user' },
        content: [{ type: 'text', text: said }],
      })
      // The provider adds some tokens of its own.
      const own = 350
      const inputTokens = Math.round(own + first.length * perChar)
      const usage = { ...NO_TOKENS, inputTokens, outputTokens: 1 }
      const reply: TranscriptEntry = {
        ...{ id: 'e2', at, role: 'assistant', parts: [{ type: 'text', text: 'Да.' }] },
        ...{ provider: 'other', model: 'other', finishReason: 'stop', usage },
      }
      const model = windowedModel({ window: 1000, reply: () => [] })
      const { tokens, by } = await countTokens(model, [say('e1', first), reply, say('e3', second)])
      expect(by).toBe('estimate')
      const actual = inputTokens + second.length * perChar + 10
      expect(Math.abs(tokens / actual - 1)).toBeLessThan(0.1)
    },
  )

  test('XC-31 an aborted count rejects', async () => {
    const fetch: typeof globalThis.fetch = () => new Promise(() => undefined)
    const model = anthropic('claude-sonnet-5', { apiKey: 'k', fetch })
    const signal = AbortSignal.abort(new Error('Enough.'))
    await expect(countTokens(model, text, { signal })).rejects.toThrow('Enough.')
  })
})
