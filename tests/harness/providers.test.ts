import { describe, expect, test } from 'vitest'
import type { Model } from 'thinharness'
import { anthropic, openai, openrouter } from 'thinharness/providers'
import { scriptedProvider } from 'thinharness/testing'
import type { ScriptedProvider } from 'thinharness/testing'
import { harnessOf, tool } from './support.js'

type Body = Readonly<Record<string, unknown>>

function bodies({ requests }: ScriptedProvider): Body[] {
  return requests.map(({ body }) => body as Body)
}

const MODELS: Readonly<
  Record<'openai' | 'chained' | 'anthropic' | 'openrouter', (provider: ScriptedProvider) => Model>
> = {
  openai: ({ url }) => openai('gpt-5.5', { apiKey: 'any', baseUrl: url.responses }),
  chained: ({ url }) => openai('gpt-5.5', { apiKey: 'any', baseUrl: url.responses, chain: true }),
  anthropic: ({ url }) => anthropic('claude-sonnet-5', { apiKey: 'any', baseUrl: url.messages }),
  openrouter: ({ url }) => openrouter('x/y', { apiKey: 'any', baseUrl: url.openrouter }),
}

describe('a run with a provider', () => {
  test('HC-01 an OpenAI tool loop sends the tools and no metadata, chains the response id and returns the output', async () => {
    await using provider = await scriptedProvider()
    provider.calls('add', { a: 1 }, { callId: 'call_a' }).says('2.')
    const harness = harnessOf({ model: MODELS.chained(provider), tools: [tool('add', () => '2')] })
    const result = await harness.run('What is 1 + 1?', { metadata: { tenant: 'acme-7' } })
    expect(result).toMatchObject({ text: '2.', usage: { modelRequests: 2, toolCalls: 1 } })
    const [first, second] = bodies(provider)
    expect(first).toMatchObject({ tools: [{ type: 'function', name: 'add' }] })
    expect(first).not.toHaveProperty('previous_response_id')
    expect(second).toMatchObject({
      previous_response_id: expect.stringMatching(/^resp/) as string,
      input: [{ type: 'function_call_output', call_id: 'call_a', output: '2' }],
    })
    expect(JSON.stringify(provider.requests)).not.toContain('acme-7')
  })

  test.each(['openai', 'anthropic', 'openrouter'] as const)(
    'HC-13 HC-14 two runs with one model leak no messages, in turn or concurrently: %s',
    async (name) => {
      await using provider = await scriptedProvider()
      provider.always(({ turn, messages }) => {
        const prompt = messages.find(({ role }) => role === 'user')
        const text = prompt?.role === 'user' ? String(prompt.content) : ''
        return turn === 0 ? { calls: [{ name: 'a', arguments: { prompt: text } }] } : `Done with ${text}`
      })
      const harness = harnessOf({
        model: MODELS[name](provider),
        tools: [tool('a', ({ prompt }) => prompt)],
        instructions: 'Be brief.',
      })
      const prompts = ['first', 'second', 'third', 'fourth']
      const [one, two, ...rest] = prompts
      const texts = [(await harness.run(one!)).text, (await harness.run(two!)).text]
      texts.push(...(await Promise.all(rest.map(async (prompt) => (await harness.run(prompt)).text))))
      expect(texts).toEqual(prompts.map((prompt) => `Done with ${prompt}`))
      for (const body of bodies(provider)) {
        const text = JSON.stringify(body)
        expect(prompts.filter((prompt) => text.includes(prompt))).toHaveLength(1)
        if (name === 'openrouter') expect((body['messages'] as Body[])[0]).toMatchObject({ role: 'system' })
      }
      expect(provider.requests).toHaveLength(8)
    },
  )
})
