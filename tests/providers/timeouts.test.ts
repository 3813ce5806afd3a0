import Anthropic from '@anthropic-ai/sdk'
import { describe, expect, test, vi } from 'vitest'
import { Harness } from 'thinharness'
import { anthropic, openai, openaiCompatible } from 'thinharness/providers'
import type { ProviderOptions } from 'thinharness/providers'

const NEVER = new Promise<Response>(() => undefined)

/** The requests that a run sends to a server that does not answer the first of them. */
async function requestsTo(baseUrl: string): Promise<{ readonly count: number; readonly error: unknown }> {
  const chat = { choices: [{ message: { role: 'assistant', content: 'Done.' }, finish_reason: 'stop' }] }
  const fetch = vi.fn<typeof globalThis.fetch>(async () => Response.json(chat)).mockReturnValueOnce(NEVER)
  const options: ProviderOptions = { apiKey: 'any', fetch, timeouts: { firstByteMs: 20 } }
  const model = openaiCompatible('m', { ...options, baseUrl })
  const run = new Harness({ model, builtinTools: [] }).run('Go.')
  const error = await run.then(
    () => null,
    (reason: unknown) => reason,
  )
  return { count: fetch.mock.calls.length, error }
}

describe('a request that timed out after it was sent', () => {
  test.each(['https://api.vendor.com/v1', 'https://10.vendor.com', 'http://8.8.8.8/v1'])(
    'PR-34 it is not repeated, since the provider may charge for it: %s',
    async (baseUrl) => {
      const { count, error } = await requestsTo(baseUrl)

      expect(error).toMatchObject({ code: 'provider_error', retryable: true })
      expect(count).toBe(1)
    },
  )

  test('PR-34 it is repeated if the server is local or in a private network, which is free', async () => {
    const hosts = [
      '127.0.0.1:8080',
      'localhost:1',
      '[::1]:1',
      'vllm',
      '192.168.1.5',
      '172.20.0.2',
      '10.1.2.3',
      'gpu.local',
    ]
    const results = await Promise.all(hosts.map((host) => requestsTo(`http://${host}/v1`)))

    expect(results).toEqual(hosts.map(() => ({ count: 2, error: null })))
  })

  test('PR-34 it is not repeated through an official client, whose server is not known', async () => {
    const create = vi.fn(() => NEVER)
    const model = openai('gpt-5.5', { client: { responses: { create } }, timeouts: { firstByteMs: 20 } })

    await expect(new Harness({ model, builtinTools: [] }).run('Go.')).rejects.toMatchObject({ retryable: true })
    expect(create).toHaveBeenCalledTimes(1)
  })
})

describe('the version of Anthropic’s API', () => {
  /** The version in the request of a run with `client`, and in one that the client sends by itself. */
  async function versions(options: { readonly apiVersion?: '2023-06-01' } = {}): Promise<(string | null)[]> {
    const seen: (string | null)[] = []
    const fetch: typeof globalThis.fetch = async (url, init) => {
      seen.push(new Request(url, init).headers.get('anthropic-version'))
      const content = [{ type: 'text', text: 'Done.' }]
      return Response.json({ id: 'm', type: 'message', role: 'assistant', content, stop_reason: 'end_turn' })
    }
    const client = new Anthropic({ apiKey: 'any', fetch })
    await client.messages.create({ model: 'm', max_tokens: 1, messages: [{ role: 'user', content: 'Go.' }] })
    const model = anthropic('claude-sonnet-5', { client, ...options })
    await new Harness({ model, builtinTools: [] }).run('Go.')
    return seen
  }

  test('PR-35 it is that of the client that was passed in, unless `apiVersion` is given', async () => {
    const [own, sent] = await versions()
    expect(own).not.toBe('2023-06-01')
    expect(sent).toBe(own)
    expect((await versions({ apiVersion: '2023-06-01' }))[1]).toBe('2023-06-01')
  })
})
