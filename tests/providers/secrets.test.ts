import { createAnthropic } from '@ai-sdk/anthropic'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { defineTool, Harness, HarnessError, memoryLog } from 'thinharness'
import type { Model, RunEvent } from 'thinharness'
import { mcpHttp, mcpStdio } from 'thinharness/mcp'
import { anthropic, fromAiSdk, openai, openaiCompatible } from 'thinharness/providers'

const KEY = 'my-plain-key-0815'
const HEADER = 'of-the-gateway'
const QUERY = 'query/key+value 77'
const SECRETS = [KEY, HEADER, QUERY, encodeURIComponent(QUERY), new URLSearchParams({ k: QUERY }).toString().slice(2)]

type Fetch = typeof globalThis.fetch

const address = (path: string): string => {
  const url = new URL(path, 'http://provider.invalid')
  url.searchParams.set('subscription-key', QUERY)
  return url.href
}
const headers = { 'x-gateway': HEADER }

const MODELS: Readonly<Record<string, (fetch: Fetch) => Model>> = {
  Messages: (fetch) =>
    anthropic('claude-sonnet-5', { apiKey: KEY, fetch, headers, maxRetries: 0, baseUrl: address('/') }),
  Responses: (fetch) => openai('gpt-5.5', { apiKey: KEY, fetch, headers, maxRetries: 0, baseUrl: address('/v1') }),
  'chat completions': (fetch) =>
    openaiCompatible('m', { apiKey: KEY, fetch, headers, maxRetries: 0, baseUrl: address('/v1') }),
  "Anthropic's client": (fetch) =>
    anthropic('claude-sonnet-5', {
      headers,
      maxRetries: 0,
      client: new Anthropic({ apiKey: KEY, fetch, baseURL: address('/') }),
    }),
  "OpenAI's client": (fetch) =>
    openai('gpt-5.5', { headers, maxRetries: 0, client: new OpenAI({ apiKey: KEY, fetch, baseURL: address('/v1') }) }),
  'the AI SDK': (fetch) =>
    fromAiSdk(createAnthropic({ apiKey: KEY, fetch, headers, baseURL: address('/v1') })('claude-sonnet-5'), {
      maxRetries: 0,
    }),
}

/** A text that repeats the whole request. */
const echo = `Bad request: ${JSON.stringify({ 'x-api-key': KEY, ...headers })} ${SECRETS.join(' ')} ${'x'.repeat(850)} ${KEY} ${KEY}`
const error = { type: 'error', error: { type: 'invalid_request_error', message: echo } }
const stream = (body: string): Response => new Response(body, { headers: { 'content-type': 'text/event-stream' } })

const FAULTS: Readonly<Record<string, () => Response>> = {
  'an error event': () => stream(`event: error\ndata: ${JSON.stringify(error)}\n\n`),
  'an error in a reply': () => Response.json(error),
  'a status': () => Response.json(error, { status: 400 }),
  'a page': () => new Response(`<title>${echo}</title>`, { status: 502 }),
  'a broken event': () => stream(`data: {${echo}\n\ndata: {}\n\n`),
  'something else': () => Response.json({ nothing: echo }),
  'no JSON': () => new Response(echo),
  'a redirect': () => new Response('', { status: 302, headers: { location: address('/other') } }),
  'a failed connection': () => {
    throw Object.assign(
      new TypeError('fetch failed', { cause: new Error(`cannot reach ${address('/')} with ${KEY}`) }),
      {
        options: { headers: { authorization: `Bearer ${KEY}` } },
      },
    )
  },
}

function showsNone(shown: string): void {
  for (const secret of SECRETS) expect(shown.includes(secret) ? `${secret} in ${shown}` : '').toBe('')
  expect(shown.includes(KEY.slice(0, 12)) ? `a part in ${shown}` : '').toBe('')
}

describe.each(Object.entries(MODELS))('with %s, no secret is shown', (_api, make) => {
  test.each(Object.entries(FAULTS))('by %s', async (_fault, answer) => {
    const log = memoryLog()
    const harness = new Harness({ model: make(async () => answer()), builtinTools: [], log })
    for (const deltas of [true, false]) {
      const events: RunEvent[] = []
      const run = harness.stream('Go.', { deltas })
      const failure: unknown = await (async () => {
        for await (const event of run) events.push(event)
        return await run.result
      })().catch((reason: unknown) => reason)
      expect(failure).toBeInstanceOf(HarnessError)
      const { run: report } = failure as HarnessError
      showsNone(inspect(failure, { depth: null, showHidden: true }))
      showsNone(JSON.stringify([events, report?.resumeState]))
      const stored: unknown[] = []
      for await (const event of log.read({ kind: 'run', id: run.runId })) stored.push(event)
      showsNone(JSON.stringify(stored))
    }
  })
})

test('a tool that fails with a key of the model shows none', async () => {
  const replies = [
    { content: [{ type: 'tool_use', id: 'a', name: 'look', input: {} }], stop_reason: 'tool_use' },
    { content: [{ type: 'text', text: 'Done.' }], stop_reason: 'end_turn' },
  ]
  const model = MODELS['Messages']!(async () => Response.json({ type: 'message', ...replies.shift() }))
  const handler = (): never => {
    throw new Error(`401 for ${KEY}`)
  }
  const look = defineTool({ name: 'look', description: 'Looks.', parameters: { type: 'object' }, handler })
  const { transcript } = await new Harness({ model, tools: [look], builtinTools: [] }).run('Go.')
  showsNone(JSON.stringify(transcript))
})

describe('a server of the Model Context Protocol shows no secret', () => {
  const own = ['env-secret-value', 'arg-s3cr3t-42', 'pa55word-of-db', 'value-0f-header', 'query-s3cr3t-17']
  const showsNoneOf = (shown: string): void => {
    for (const secret of own) expect(shown.includes(secret) ? `${secret} in ${shown}` : '').toBe('')
  }
  const args = ['--api-key', own[1]!, `--db=postgres://ann:${own[2]!}@host/db`]
  const print = 'console.error(JSON.stringify([process.env, process.argv])); process.exit(3)'

  test.each([
    ['that writes all to its standard error', process.execPath, ['-e', print, '--', ...args]],
    ['that cannot be started', '/nowhere/server', args],
  ])('%s', async (_what, command, given) => {
    const server = mcpStdio({
      id: 'own',
      command,
      args: given,
      env: { SETTING: own[0]! },
      timeouts: { connectMs: 5000 },
    })
    const warned: string[] = []
    const model = MODELS['Messages']!(async () => Response.json(error, { status: 400 }))
    await using harness = new Harness({ model, builtinTools: [], mcpServers: [server] })
    const described = await harness.describe()
    showsNoneOf(`${inspect(described, { depth: null })}${String(described)}`)
    const required = mcpStdio({ id: 'own', command, args: given, env: { SETTING: own[0]! }, required: true })
    await using strict = new Harness({ model, builtinTools: [], mcpServers: [required] })
    const failure: unknown = await strict.connect().catch((reason: unknown) => reason)
    expect(failure).toBeInstanceOf(HarnessError)
    showsNoneOf(inspect(failure, { depth: null, showHidden: true }))
    showsNoneOf(warned.join(''))
  })

  test('over HTTP', async () => {
    const server = mcpHttp({
      url: `http://127.0.0.1:9/mcp?api_key=${own[4]!}`,
      headers: { 'x-own': own[3]! },
      required: true,
      fetch: async (url) => {
        throw new Error(`no way to ${String(url instanceof Request ? url.url : url)} with ${own[3]!}`)
      },
    })
    const model = MODELS['Messages']!(async () => Response.json(error, { status: 400 }))
    await using harness = new Harness({ model, builtinTools: [], mcpServers: [server] })
    const failure: unknown = await harness.connect().catch((reason: unknown) => reason)
    expect(failure).toBeInstanceOf(HarnessError)
    showsNoneOf(inspect(failure, { depth: null, showHidden: true }))
  })
})
