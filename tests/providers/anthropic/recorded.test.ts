import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { HarnessError } from 'thinharness'
import type { ModelDelta, RequestConstants } from 'thinharness'
import { anthropic } from '#providers/anthropic/index.js'
import { errorFromBody } from '#providers/http/provider-errors.js'
import { EventReader } from '#providers/http/sse-reader.js'
import type { DecodedReply } from '#providers/http/wire-format.js'
import type { ContentPart, TranscriptEntry } from '#contracts/entry.js'
import { textOf, toolCallsOf } from '#contracts/entry.js'
import { isObject } from '#util/json.js'
import type { JsonObject, JsonValue } from '#util/json.js'
import {
  answerOf,
  atRandom,
  byteByByte,
  bytesOf,
  expectAnswer,
  fetchOf,
  PROVIDER_CASES,
  providerCases,
  whole,
} from '../../support/provider-cases.js'
import type { Cut, ProviderCase } from '../../support/provider-cases.js'
import { expectValidRequest } from '../../support/request-schemas.js'
import { bodyOf, callIdFor, CONSTANTS, format, tool, user } from './support.js'

const cases = providerCases('anthropic-messages')
const CUTS: readonly (readonly [string, Cut])[] = [
  ['whole', whole],
  ['byte by byte', byteByByte],
  ['cut at random', atRandom(7)],
  ['cut at random again', atRandom(1234)],
]

interface Told {
  readonly reply: DecodedReply
  readonly deltas: readonly ModelDelta[]
}

function told(each: ProviderCase, cut: Cut): Told {
  const deltas: ModelDelta[] = []
  const options = { callIdFor, onDelta: (delta: ModelDelta) => void deltas.push(delta) }
  if (each.response.status >= 400) throw errorFromBody(each.response.status, each.response.headers, each.response.body)
  if (!each.stream) return { reply: format().decode(each.response.body, options), deltas }
  const reader = new EventReader()
  const fold = format().fold(options)
  for (const piece of cut(bytesOf(each))) for (const chunk of reader.push(piece)) fold.add(chunk)
  for (const chunk of reader.end()) fold.add(chunk)
  return { reply: fold.end(), deltas }
}

/** The expected blocks of the case: kind by kind, in order. */
function expectBlocks({ expect: wanted }: ProviderCase, { reply }: Told): void {
  const { parts } = reply
  expect(textOf(parts)).toBe(wanted.text)
  expect(reply.nativeFinishReason).toBe(wanted.finishRaw)
  expect(wanted.finishAccept ?? [wanted.finish]).toContain(reply.finishReason)
  expect(toolCallsOf(parts).map(({ callId, name }) => ({ id: callId, name }))).toEqual(
    wanted.toolCalls.map(({ id, name }) => ({ id, name })),
  )
  const natives = parts.filter(({ type }) => type === 'opaque' || type === 'hosted').map((part) => part.native?.data)
  expect(natives).toMatchObject(wanted.otherBlocks)
  expect(natives).toHaveLength(wanted.otherBlocks.length)
  const thoughts = parts.filter((part) => part.type === 'reasoning')
  expect(thoughts.map(({ text, native }) => ({ text, ...kindOf(native?.data) }))).toEqual(
    (wanted.reasoning as { text: string | null; hasSignature: boolean; redacted: boolean }[]).map((thought) => ({
      ...thought,
      text: thought.text ?? '',
    })),
  )
}

function kindOf(data: JsonValue | undefined): { hasSignature: boolean; redacted: boolean; dataLength?: number } {
  const { type, signature, data: hidden } = (data ?? {}) as JsonObject
  const dataLength = typeof hidden === 'string' ? { dataLength: hidden.length } : {}
  return { hasSignature: typeof signature === 'string', redacted: type === 'redacted_thinking', ...dataLength }
}

function expectDeltas({ reply, deltas }: Told): void {
  const joined = (kind: ModelDelta['kind'], callId?: string): string =>
    deltas
      .filter((delta) => delta.kind === kind && delta.callId === callId)
      .map(({ text }) => text)
      .join('')
  expect(joined('text_delta')).toBe(textOf(reply.parts))
  const thoughts = reply.parts.filter((part) => part.type === 'reasoning')
  expect(joined('reasoning_delta')).toBe(thoughts.map(({ text }) => text).join(''))
  for (const { callId, arguments: text } of toolCallsOf(reply.parts)) {
    expect(joined('tool_input_delta', callId) || '{}').toBe(text)
  }
}

describe('recorded replies', () => {
  test.each(cases.filter(({ expect: { error } }) => error === null).map((each) => [each.file, each] as const))(
    '%s is decoded as recorded, however it is split',
    (_file, each) => {
      const answers = CUTS.map(([, cut]) => told(each, cut))
      for (const answer of answers) {
        expectBlocks(each, answer)
        if (each.stream) expectDeltas(answer)
        expect(answer).toEqual(answers[0])
      }
    },
  )

  test.each(cases.filter(({ expect: { error } }) => error !== null).map((each) => [each.file, each] as const))(
    '%s is an error',
    (_file, each) => {
      for (const [, cut] of CUTS) {
        expect(() => told(each, cut)).toThrow(HarnessError)
      }
    },
  )

  test.each(cases.flatMap((each) => CUTS.map(([name, cut]) => [each.file, name, each, cut] as const)))(
    '%s leaves the model as recorded, %s',
    async (_file, _name, each, cut) => {
      const model = anthropic('claude-sonnet-5', { apiKey: 'k', fetch: fetchOf(each, cut), maxRetries: 0 })
      expectAnswer(each, await answerOf(model, each))
    },
  )

  test.each(cases.filter(({ expect: { error } }) => error === null).map((each) => [each.file, each] as const))(
    'RF-05 a recorded reply is sent back in the form that the API accepts: %s',
    (_file, each) => {
      const { reply } = told(each, whole)
      const entries = conversationUpTo(reply)
      for (const version of ['2023-06-01', '2026-10-21'] as const) {
        const body = bodyOf(format({ id: 'claude-sonnet-5', version }), entries)
        expectValidRequest('anthropic-messages-beta', withoutNullAbort(body), { version })
      }
    },
  )
})

/** The API sends `abort_reason: null`, which its schema of requests does not contain. */
function withoutNullAbort(body: JsonObject): unknown {
  return JSON.parse(JSON.stringify(body), (key, value: unknown) =>
    key === 'abort_reason' && value === null ? undefined : value,
  )
}

/** A conversation in which `reply` has been given, and its calls answered. */
function conversationUpTo(reply: DecodedReply): TranscriptEntry[] {
  const { parts, finishReason, usage } = reply
  const stamp = { id: 'e', at: '2026-01-01T00:00:00.000Z' }
  return [
    user('Go on.'),
    { role: 'assistant', ...stamp, parts, provider: 'anthropic', model: 'm', finishReason, usage },
    ...toolCallsOf(parts).map(({ callId }) => tool(callId, '{"ok":true}')),
    user('And now?'),
  ]
}

interface Exchange {
  readonly request: { readonly body: JsonObject }
  readonly response: ProviderCase['response']
}

const CONVERSATIONS = `${PROVIDER_CASES}conversations/`

const conversations = readdirSync(CONVERSATIONS)
  .filter((file) => file.startsWith('anthropic-messages'))
  .map((file) => {
    const { exchanges } = JSON.parse(readFileSync(CONVERSATIONS + file, 'utf8')) as { exchanges: Exchange[] }
    return [file, exchanges] as const
  })

describe('recorded conversations', () => {
  test.each(conversations)('RS-02 a recorded conversation is encoded as recorded: %s', (_file, exchanges) => {
    const replies = exchanges.map((exchange) => told(asCase(exchange), whole).reply)
    for (const { request } of exchanges) {
      const { messages, model, thinking } = request.body
      const wire = format({ id: textIn(model) })
      const constants: RequestConstants = {
        ...CONSTANTS,
        settings: { providerOptions: { anthropic: thinking === undefined ? {} : { thinking } } },
      }
      const entries = entriesOf(messages as readonly JsonObject[], replies)
      const body = bodyOf(wire, entries, constants)
      expect(normal(body['messages'])).toEqual(normal(messages))
      expectValidRequest('anthropic-messages', body, { version: '2023-06-01' })
    }
  })
})

function asCase({ response }: Exchange): ProviderCase {
  return { response, stream: response.body === undefined } as ProviderCase
}

/** The transcript of recorded messages: replies from the decoder, the client's messages from the request. */
function entriesOf(messages: readonly JsonObject[], replies: readonly DecodedReply[]): TranscriptEntry[] {
  let answered = 0
  return messages.flatMap(({ role, content }): TranscriptEntry[] => {
    if (role === 'assistant') {
      const reply = replies[answered++]!
      const { parts, finishReason, usage } = reply
      return [{ role, id: 'e', at: '', parts, provider: 'anthropic', model: 'm', finishReason, usage }]
    }
    if (typeof content === 'string') return [user(content)]
    const blocks = content as readonly JsonObject[]
    const results = blocks.filter(({ type }) => type === 'tool_result')
    const said = blocks.filter(({ type }) => type !== 'tool_result')
    return [
      ...results.map((result) =>
        tool(textIn(result['tool_use_id']), contentOf(result['content']), result['is_error'] === true),
      ),
      ...(said.length === 0 ? [] : [user(partsOf(said), results.length > 0)]),
    ]
  })
}

function contentOf(content: JsonValue | undefined): string | ContentPart[] {
  return typeof content === 'string' ? content : partsOf((content ?? []) as readonly JsonObject[])
}

function partsOf(blocks: readonly JsonObject[]): ContentPart[] {
  return blocks.map((block) => {
    if (block['type'] === 'text') return { type: 'text', text: textIn(block['text']) }
    throw new Error(`A recorded block of type ${textIn(block['type'])} has no entry here.`)
  })
}

function textIn(value: JsonValue | undefined): string {
  if (typeof value === 'string') return value
  throw new Error(`Expected a text, got ${JSON.stringify(value)}.`)
}

/** Two ways to say one thing: a string is a list of one text, `is_error: false` and null members are left out. */
function normal(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(normal)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, member]) => {
      if (member === null || key === 'cache_control' || (key === 'is_error' && member === false)) return []
      if (key === 'content' && typeof member === 'string') return [[key, [{ type: 'text', text: member }]]]
      return [[key, normal(member)]]
    }),
  )
}
