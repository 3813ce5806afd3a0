import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Harness, HarnessError, ToolResult, defineTool } from 'thinharness'
import type { Extension, HarnessResult, RunEvent } from 'thinharness'
import { clearResults, compact, observe, summarise } from 'thinharness/context'
import { anthropic, openai, openaiCompatible } from 'thinharness/providers'
import type { ProviderOptions } from 'thinharness/providers'
import { scriptedProvider } from 'thinharness/testing'
import type { ScriptedProvider } from 'thinharness/testing'

let provider: ScriptedProvider
beforeEach(async () => {
  provider = await scriptedProvider()
  refused = 0
})
afterEach(() => provider.close())

const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ', 'base64')
const PICTURE = Buffer.concat([PNG, Buffer.alloc(20_000)]).toString('base64')
const MOST_BYTES = 300_000

const shot = defineTool({
  name: 'shot',
  description: 'Takes a picture.',
  parameters: { type: 'object', properties: { n: { type: 'number' } } },
  handler: () =>
    new ToolResult({ content: 'The page.', parts: [{ type: 'image', data: PICTURE, mediaType: 'image/png' }] }),
})

let refused = 0

const REFUSALS: Readonly<Record<string, () => Response>> = {
  'the page of a proxy': () =>
    new Response('<html><title>413 Request Entity Too Large</title></html>', { status: 413 }),
  'a type': () =>
    Response.json(
      { error: { type: 'request_too_large', message: 'Request exceeds the maximum size' } },
      { status: 413 },
    ),
  'a sentence on all pictures': () =>
    Response.json({ error: { message: 'Total image content cannot exceed 30 MB' } }, { status: 400 }),
}

/** Answers as a provider that takes so many bytes. */
function limited(refusal: () => Response): typeof fetch {
  return async (url, init) => {
    if ((init?.body as Uint8Array).length <= MOST_BYTES) return fetch(url, init)
    refused += 1
    return refusal()
  }
}

type Api = 'messages' | 'responses' | 'chat'

function modelOf(api: Api, options: ProviderOptions) {
  const given = { ...options, apiKey: 'any', baseUrl: provider.url[api] }
  if (api === 'messages') return anthropic('claude-sonnet-5', given)
  return api === 'responses'
    ? openai('gpt-5.5', given)
    : openaiCompatible('m', { ...given, baseUrl: provider.url.chat })
}

async function run(
  api: Api,
  use: readonly Extension[],
  options: ProviderOptions,
): Promise<{ readonly result: HarnessResult; readonly events: readonly RunEvent[] }> {
  for (let n = 1; n <= 25; n++) provider.calls('shot', { n })
  provider.says('Done.')
  const harness = new Harness({ model: modelOf(api, options), tools: [shot], builtinTools: [], use })
  const events: RunEvent[] = []
  const stream = harness.stream('Go.', { deltas: false })
  for await (const event of stream) events.push(event)
  return { result: await stream.result, events }
}

describe('a request that has more bytes than the provider takes', () => {
  test.each(['messages', 'responses', 'chat'] as const)(
    'is sent again without its oldest pictures, in %s',
    async (api) => {
      for (const refusal of Object.values(REFUSALS)) {
        refused = 0
        const { result, events } = await run(api, [clearResults()], { fetch: limited(refusal) })
        expect(result.text).toBe('Done.')
        expect(refused).toBeGreaterThan(0)
        expect(events.filter(({ kind }) => kind === 'view_changed')).toHaveLength(refused)
        const last = JSON.stringify(provider.requests.at(-1)?.body)
        expect(last.split('A picture or file was removed').length - 1).toBeGreaterThan(5)
        expect(last.split('The page.').length - 1).toBe(25)
        expect(last).toContain(PICTURE)
      }
    },
  )

  test('is so under every policy', async () => {
    const writer = anthropic('claude-haiku-4-5', { apiKey: 'any', baseUrl: provider.url.messages })
    for (const policy of [compact(), summarise({ model: writer }), observe({ model: writer })]) {
      const { result } = await run('messages', [policy], { fetch: limited(REFUSALS['a type']!) })
      expect(result.text).toBe('Done.')
    }
  })

  test('is made smaller before it is sent, if the limit is known', async () => {
    const options = { fetch: limited(REFUSALS['a type']!), capabilities: { requestBytes: MOST_BYTES } }
    const { result } = await run('messages', [clearResults()], options)
    expect([result.text, refused]).toEqual(['Done.', 0])
  })

  test('ends the run without a policy, with its size and its pictures', async () => {
    const error: unknown = await run('messages', [], { fetch: limited(REFUSALS['a type']!), maxRetries: 0 }).catch(
      (reason: unknown) => reason,
    )
    expect(error).toBeInstanceOf(HarnessError)
    expect(error).toMatchObject({ status: 413, retryable: false })
    expect((error as Error).message).toMatch(
      /^The request is larger than the provider takes\. It has about \d{6} bytes, with 1\d pictures and files of \d{6} bytes: .*Largest entries: `e\d+` \(result of `shot`, \d+ characters\)/,
    )
  })
})
