import { expect, test } from 'vitest'
import { WebSocket } from 'undici'
import { defineTool, Harness } from 'thinharness'
import { openai } from 'thinharness/providers'
import { scriptedProvider } from 'thinharness/testing'
import type { ScriptedProvider } from 'thinharness/testing'

const lookup = defineTool({
  name: 'lookup',
  description: 'Looks it up.',
  parameters: { type: 'object' },
  handler: () => 'found',
})

function harnessOf(provider: ScriptedProvider, maxRetries = 0): Harness {
  const options = { apiKey: 'k', baseUrl: provider.url.responses, transport: 'websocket', maxRetries } as const
  return new Harness({ model: openai('gpt-5.5', options), tools: [lookup], builtinTools: [] })
}

test.each(['event', 'whole', 3] as const)(
  'the Responses API is served over a WebSocket too (chunks: %s)',
  async (chunks) => {
    await using provider = await scriptedProvider({ chunks })
    provider.calls('lookup').replies(({ heard }) => {
      expect(heard).toMatchObject({ outputs: [{ content: 'found' }] })
      return 'Done.'
    })
    expect((await harnessOf(provider).run('Go.')).text).toBe('Done.')
    expect(provider.requests.map(({ method, path }) => [method, path])).toEqual([
      ['WEBSOCKET', '/v1/responses'],
      ['WEBSOCKET', '/v1/responses'],
    ])
    expect(provider.requests[1]?.body).toMatchObject({
      store: false,
      previous_response_id: expect.any(String) as string,
    })
    expect(provider.requests[0]?.headers).not.toHaveProperty('authorization')
  },
)

test('an error is a message with its status and headers, and a drip is a stream', async () => {
  await using provider = await scriptedProvider()
  provider.fails(429, { headers: { 'retry-after-ms': '1' } }).drips('Done.', { bytes: 40 })
  const run = harnessOf(provider, 1).stream('Go.')
  const failures: unknown[] = []
  for await (const event of run) if (event.kind === 'transport_retry') failures.push([event.failure, event.status])
  expect((await run.result).text).toBe('Done.')
  expect(failures).toEqual([['rate_limit', 429]])
})

test.each([
  ['reset', 'connection'],
  ['truncate', 'connection'],
  ['garble', 'server'],
  ['error', 'server'],
] as const)('a reply that breaks with `%s` fails as one of a connection does', async (how, failure) => {
  await using provider = await scriptedProvider()
  provider.breaks(how)
  await expect(harnessOf(provider).run('Go.')).rejects.toMatchObject({ code: 'provider_error', failure })
})

test.each([
  [{ type: 'response.create', model: 'm', input: 'Go.', stream: true }, "Unknown parameter: 'stream'."],
  [{ type: 'session.update' }, "Invalid value: 'session.update'."],
  [{ type: 'response.create', model: 'm', input: 'Go.', previous_response_id: 'resp_1' }, 'not found'],
])('a message is checked as the API checks it: %j', async (message, problem) => {
  const provider = await scriptedProvider()
  const socket = new WebSocket(`${provider.url.responses.replace('http', 'ws')}/responses`, {
    headers: { authorization: 'Bearer k' },
  })
  const answer = await new Promise<string>((resolve) => {
    socket.addEventListener('open', () => socket.send(JSON.stringify(message)))
    socket.addEventListener('message', ({ data }) => resolve(String(data)))
  })
  expect(JSON.parse(answer)).toMatchObject({
    type: 'error',
    status: 400,
    error: { message: expect.stringContaining(problem) as string },
  })
  socket.close()
  await provider.close()
  expect(() => provider.assertDone()).toThrow(problem)
})
