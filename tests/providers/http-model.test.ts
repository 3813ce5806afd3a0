import { NO_TOKENS } from '#contracts/entry.js'
import { describe, expect, test } from 'vitest'
import { Harness } from 'thinharness'
import type { JsonObject } from 'thinharness'
import { httpModel, mendHistory } from 'thinharness/providers'
import type { HttpReply } from 'thinharness/providers'
import { conformance } from 'thinharness/testing'
import type { ConformanceApi } from 'thinharness/testing'
import { acme } from '../../docs/snippets/providers/own-adapter.js'
import { errorOf } from './support.js'

interface Message {
  readonly user?: string
  readonly result?: string
  readonly text?: string
  readonly parts?: readonly {
    readonly text?: string
    readonly call?: string
    readonly id?: string
    readonly input?: string
  }[]
}

const urls = new Set<string>()

/** Acme's side of its API. */
const server: ConformanceApi = {
  read({ url, headers, body }) {
    urls.add(`${new URL(url).pathname} ${String(headers['authorization'])}`)
    const messages = body['messages'] as readonly Message[]
    return {
      instructions: String(body['system']),
      tools: (body['tools'] as readonly { readonly name: string }[]).map(({ name }) => name),
      messages: messages.map(({ user, result, text = '', parts = [] }) => {
        if (user !== undefined) return { role: 'user', content: user }
        if (result !== undefined) return { role: 'tool', callId: result, content: text }
        const calls = parts.flatMap(({ call: name, id: callId = '', input = '' }) =>
          name === undefined ? [] : [{ name, callId, arguments: input }],
        )
        return { role: 'assistant', text: parts.map((part) => part.text ?? '').join(''), calls }
      }),
    }
  },
  whole: (reply) => ({ parts: partsOf(reply), ...endOf(reply) }),
  stream: (reply) => [...partsOf(reply), endOf(reply)].map((event) => `data: ${JSON.stringify(event)}\n\n`),
  error: (_status, message) => ({ error: { message } }),
}

type Reply = Parameters<ConformanceApi['whole']>[0]

function partsOf({ parts }: Reply): readonly JsonObject[] {
  return parts.flatMap((part): readonly JsonObject[] => {
    if (part.type === 'call')
      return [{ call: part.name, ...(part.callId !== null && { id: part.callId }), input: part.arguments }]
    return part.type === 'text' ? [{ text: part.text }] : []
  })
}

const STOPS: Readonly<Record<string, string>> = { stop: 'done', tool_calls: 'calls', refusal: 'refused' }

function endOf({ finishReason, usage }: Reply): JsonObject {
  const tokens = usage && { in: usage.inputTokens, out: usage.outputTokens }
  return { stop: STOPS[finishReason] ?? finishReason, ...(tokens !== null && { tokens }) }
}

describe('a small adapter over `httpModel` keeps every law of the kit', () => {
  const laws = conformance({
    api: server,
    make: ({ baseUrl, fetch }) => acme('acme-1', { apiKey: 'k', fetch, baseUrl: `${baseUrl}/v2` }),
    cases: 5,
  })
  test.each(laws)('$name: $says', async ({ check }) => {
    await check()
    expect([...urls]).toEqual(['/v2/turns Bearer k'])
  })
})

test('`httpModel` names the option that is wrong, and needs its key only if it has a variable for one', async () => {
  const api = { provider: 'a', id: 'm', baseUrl: 'https://a.example', path: '/t', head: () => ({}), encode: () => [] }
  const decode = (): HttpReply => ({ parts: [{ type: 'text', text: 'Hi.' }], finishReason: 'stop' })
  expect(() => httpModel({ ...api, decode: 'no' as never })).toThrow(/`decode` of `httpModel`.*function/)
  const fetch = (): Promise<Response> => Promise.resolve(Response.json({}))
  expect(
    (await new Harness({ model: httpModel({ ...api, decode }, { fetch }), builtinTools: [] }).run('Go.')).text,
  ).toBe('Hi.')
  const keyed = httpModel({ ...api, decode, apiKeyVariable: 'NO_SUCH_KEY_IS_SET' }, { fetch })
  const error = await errorOf(new Harness({ model: keyed, builtinTools: [] }).run('Go.'))
  expect(error).toMatchObject({ code: 'missing_key', failure: 'auth' })
})

test('`mendHistory` gives each call its one result', () => {
  const call = { type: 'tool_call', callId: 'c', name: 'look', arguments: '{}' } as const
  const stamp = { id: 'e1', at: '2026-01-01T00:00:00.000Z' }
  const entry = {
    role: 'assistant',
    ...stamp,
    parts: [call],
    provider: 'a',
    model: 'm',
    finishReason: 'tool_calls',
  } as const
  const usage = {
    ...NO_TOKENS,
    inputTokens: null,
    outputTokens: null,
    cacheReadTokens: null,
    cacheWriteTokens: null,
    reasoningTokens: null,
  }
  const { entries, repairs } = mendHistory([{ ...entry, usage }])
  expect(entries.map(({ role }) => role)).toEqual(['assistant', 'tool'])
  expect(repairs).toEqual([{ problem: 'missing_result', callId: 'c' }])
})
