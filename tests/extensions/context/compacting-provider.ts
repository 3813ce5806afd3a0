import { expect } from 'vitest'
import { anthropic, openai } from 'thinharness/providers'
import type { Model } from 'thinharness'
import { requestProblems } from '../../support/request-validator.js'

type Json = Readonly<Record<string, unknown>>

export interface Sent {
  readonly path: string
  readonly headers: Headers
  readonly body: Json
}

export interface CompactingProvider {
  readonly model: Model
  readonly sent: readonly Sent[]
  /** Requests for a compaction. */
  readonly compactions: readonly Sent[]
  /** Requests for a reply. */
  readonly turns: readonly Sent[]
}

export interface Behaviour {
  readonly window?: number
  /** Replies with calls of `look`, before the answer. */
  readonly calls?: number
  /** In place of a compaction, after so many of them. */
  readonly refusal?: { readonly status: number; readonly message: string; readonly after?: number }
  readonly headers?: Readonly<Record<string, string>>
}

export type Api = 'openai' | 'anthropic'

/** A provider with a compaction of its own, which checks that it gets back what it gave, where its documents say. */
export function compactingProvider(api: Api, behaviour: Behaviour = {}): CompactingProvider {
  const { window = 20_000, calls = 30, refusal, headers } = behaviour
  const sent: Sent[] = []
  let made = 0
  const wire = api === 'openai' ? RESPONSES : MESSAGES
  const compactions = (): Sent[] => sent.filter((each) => wire.isCompaction(each))
  const turns = (): Sent[] => sent.filter((each) => !wire.isCompaction(each))
  const answer = (request: Sent): Response => {
    const { body } = request
    const tokens = Math.round(JSON.stringify(body).length / 4)
    if (wire.isCompaction(request)) {
      if (refusal !== undefined && made >= (refusal.after ?? 0))
        return Response.json({ error: { message: refusal.message } }, { status: refusal.status })
      made += 1
      return Response.json(wire.compaction(made, body, tokens))
    }
    wire.check(request, made)
    const turn = turns().length
    return Response.json(turn > calls ? wire.says('Done.', tokens) : wire.calls(`call_${turn}`, tokens))
  }
  const fetch = async (url: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const body = JSON.parse(await new Response(init?.body).text()) as Json
    const request = {
      path: new URL(url instanceof Request ? url.url : url).pathname,
      headers: new Headers(init?.headers),
      body,
    }
    sent.push(request)
    return answer(request)
  }
  const options = { apiKey: 'any', fetch, capabilities: { contextTokens: window }, ...(headers && { headers }) }
  const model = api === 'openai' ? openai('gpt-5.5', options) : anthropic('claude-opus-5', options)
  return {
    model,
    sent,
    get compactions() {
      return compactions()
    },
    get turns() {
      return turns()
    },
  }
}

/** An answer is made by hand, after the provider's documents. */
interface Wire {
  isCompaction(request: Sent): boolean
  compaction(number: number, body: Json, tokens: number): unknown
  /** `compactions`: how many the provider has made. */
  check(request: Sent, compactions: number): void
  says(text: string, tokens: number): unknown
  calls(callId: string, tokens: number): unknown
}

const RESPONSES: Wire = {
  isCompaction: ({ path }) => path.endsWith('/responses/compact'),
  compaction(number, body, tokens) {
    expect(['input', 'instructions', 'model', 'prompt_cache_key']).toEqual(expect.arrayContaining(Object.keys(body)))
    const input = body['input'] as readonly Json[]
    const users = input.filter(({ role }) => role === 'user')
    return {
      id: `resp_${number}`,
      object: 'response.compaction',
      created_at: 1_790_000_000,
      output: [
        ...users.map(({ content }, index) => ({
          ...{ id: `msg_${index}`, type: 'message', role: 'user', status: 'completed' },
          content: typeof content === 'string' ? [{ type: 'input_text', text: content }] : content,
        })),
        { id: `cmp_${number}`, type: 'compaction', encrypted_content: `sealed ${number}` },
      ],
      usage: { input_tokens: tokens, input_tokens_details: { cached_tokens: 10 }, output_tokens: 300, total_tokens: 0 },
    }
  },
  check({ body }, compactions) {
    expect(requestProblems('openai-responses', body)).toEqual([])
    const input = body['input'] as readonly Json[]
    const items = input.filter(({ type }) => type === 'compaction')
    expect(items.map((item) => item['encrypted_content'])).toEqual(compactions === 0 ? [] : [`sealed ${compactions}`])
    // Before it are only messages of the user.
    const before = input.slice(
      0,
      Math.max(
        0,
        input.findIndex(({ type }) => type === 'compaction'),
      ),
    )
    expect(before.every(({ role }) => role === 'user')).toBe(true)
  },
  says: (text, tokens) =>
    response(
      [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text, annotations: [] }] }],
      tokens,
    ),
  calls: (callId, tokens) =>
    response([{ type: 'function_call', call_id: callId, name: 'look', arguments: '{}' }], tokens),
}

function response(output: readonly Json[], tokens: number): unknown {
  const usage = { input_tokens: tokens, output_tokens: 20, total_tokens: tokens + 20 }
  return { id: 'resp', object: 'response', status: 'completed', model: 'gpt-5.5', output, usage }
}

const BETA = 'compact-2026-09-04'

const MESSAGES: Wire = {
  isCompaction: ({ body }) => 'compaction' in body,
  compaction(number, body, tokens) {
    expect(body['compaction']).toEqual({ type: 'summarize' })
    expect(body).not.toHaveProperty('stream')
    const messages = body['messages'] as readonly Json[]
    const last = messages.at(-1)?.['content'] as string | readonly Json[]
    const endsInCall = typeof last !== 'string' && last.some(({ type }) => type === 'tool_use')
    expect(endsInCall).toBe(false)
    return {
      ...{ id: `msg_${number}`, type: 'message', role: 'assistant', model: 'claude-opus-5', stop_reason: 'compaction' },
      content: [{ type: 'compaction', content: `Summary ${number}: stars were seen.`, signature: `signed ${number}` }],
      usage: {
        input_tokens: 0,
        output_tokens: 0,
        iterations: [{ type: 'compaction', input_tokens: tokens, output_tokens: 300 }],
      },
    }
  },
  check({ body, headers }, compactions) {
    expect(requestProblems('anthropic-messages-beta', body, { version: '2023-06-01' })).toEqual([])
    const messages = body['messages'] as readonly { readonly content: string | readonly Json[] }[]
    const blocks = messages.flatMap(({ content }) => (typeof content === 'string' ? [] : content))
    const found = blocks.filter(({ type }) => type === 'compaction')
    if (compactions === 0) {
      expect(found).toEqual([])
      expect(headers.get('anthropic-beta') ?? '').not.toContain(BETA)
      return
    }
    const block = {
      type: 'compaction',
      content: `Summary ${compactions}: stars were seen.`,
      signature: `signed ${compactions}`,
    }
    expect(found).toEqual([block])
    expect(messages[0]?.content[0]).toEqual(block)
    expect(headers.get('anthropic-beta')).toContain(BETA)
  },
  says: (text, tokens) => message([{ type: 'text', text }], 'end_turn', tokens),
  calls: (id, tokens) => message([{ type: 'tool_use', id, name: 'look', input: {} }], 'tool_use', tokens),
}

function message(content: readonly Json[], stopReason: string, tokens: number): unknown {
  const usage = { input_tokens: tokens, output_tokens: 20, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 }
  return {
    id: 'msg',
    type: 'message',
    role: 'assistant',
    model: 'claude-opus-5',
    content,
    stop_reason: stopReason,
    usage,
  }
}
