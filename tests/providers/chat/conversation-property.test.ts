import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { AssistantPart, ContentPart, ToolCallPart, TranscriptEntry } from '#contracts/entry.js'
import { toolCallsOf } from '#contracts/entry.js'
import { MessageList } from '#providers/wire/wire-session.js'
import type { RequestConstants } from '#core/model-session.js'
import { isObject } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import { expectValidRequest } from '../../support/request-schemas.js'
import type { RequestApi } from '../../support/request-schemas.js'
import { assistant, bodyOf, constants, decode, DIALECTS, formatOf, replyOf, result, user } from './wire.js'
import { rounds } from '../../support/length.js'

/** Entries that join a conversation together: a user message, or a reply with the results of its calls. */
type Step = readonly TranscriptEntry[]

const text: fc.Arbitrary<ContentPart> = fc.record({ type: fc.constant('text'), text: fc.string() })
const image: fc.Arbitrary<ContentPart> = fc.constantFrom(
  { type: 'image', data: 'iVBORw0KGgo=', mediaType: 'image/png' } as const,
  { type: 'image', url: 'https://example.com/a.png' } as const,
)
const file: fc.Arbitrary<ContentPart> = fc.constantFrom(
  { type: 'file', data: 'JVBERi0=', mediaType: 'application/pdf', name: 'a.pdf' } as const,
  { type: 'file', data: 'dGV4dA==', mediaType: 'text/plain' } as const,
)
const audio: fc.Arbitrary<ContentPart> = fc.constant({ type: 'audio', data: 'AA', mediaType: 'audio/wav' } as const)
const content = fc.array(fc.oneof(text, image, file, audio), { maxLength: 3 })

const callId = fc.oneof(fc.string({ minLength: 1 }), fc.string({ minLength: 41, maxLength: 80 }))
const call = fc.record({
  id: callId,
  type: fc.constant('function'),
  function: fc.record({ name: fc.string(), arguments: fc.oneof(fc.json(), fc.string()) }),
})
/** A message as some server of this API sends it. */
const message = fc.record({
  content: fc.oneof(
    fc.string(),
    fc.constant(null),
    fc.array(fc.constantFrom({ type: 'text', text: 'A' }, { type: 'thinking', thinking: 'Hm' }), { maxLength: 3 }),
  ),
  reasoning_content: fc.string(),
  reasoning_details: fc.array(fc.record({ type: fc.constant('reasoning.text'), text: fc.string() }), { maxLength: 2 }),
  refusal: fc.string(),
  annotations: fc.array(fc.record({ type: fc.constant('url_citation') }), { maxLength: 1 }),
  tool_calls: fc.uniqueArray(call, { selector: ({ id }) => id, maxLength: 3 }),
})

/** A reply of this provider, or of another one: then its parts mean nothing here but what they say. */
const reply = fc.tuple(message, fc.boolean()).map(([each, isForeign]) => {
  const { parts } = decode(replyOf(each))
  const native = { provider: 'other', data: null } as const
  return assistant(isForeign ? parts.map((part): AssistantPart => ({ ...part, native })) : parts)
})
const step: fc.Arbitrary<Step> = fc.oneof(
  content.map((parts) => [user(...parts)]),
  fc
    .tuple(reply, fc.array(fc.option(fc.array(fc.oneof(text, image, file), { maxLength: 3 }))))
    .map(([entry, rich]) => [
      entry,
      ...toolCallsOf(entry.parts).map((each, index) => resultOf(each, rich[index] ?? null)),
    ]),
)
const steps = fc.array(step, { maxLength: 6 })

function resultOf({ callId: id }: ToolCallPart, parts: readonly ContentPart[] | null): TranscriptEntry {
  return result(id, parts === null ? '{"ok":true}' : [{ type: 'text', text: '{"ok":true}' }, ...parts])
}

const GIVEN: RequestConstants = constants({
  instructions: 'Be brief.',
  tools: [{ name: 'look', description: 'Looks.', parameters: { type: 'object' } }],
  structuredOutput: { name: 'final_result', schema: { type: 'object' }, strict: true },
  settings: { maxOutputTokens: 100, temperature: 1, reasoningEffort: 'low', toolChoice: { tool: 'look' } },
})
const dialects = Object.entries({
  ...DIALECTS,
  claude: { ...DIALECTS.openrouter, cacheMarks: true },
  mistral: { ...DIALECTS.mistral, contentLists: true },
  deepseek: { ...DIALECTS.deepseek, contentLists: true },
})

describe.each(dialects)('%s', (name, dialect) => {
  const format = formatOf(dialect)

  test('a conversation in steps is encoded like the whole', () => {
    fc.assert(
      fc.property(steps, (list) => {
        const inSteps = list.flatMap((each) => [...format.encode(each, GIVEN)])
        expect(inSteps).toEqual(format.encode(list.flat(), GIVEN))
      }),
    )
  })

  test('the body of a longer conversation begins with the bytes of the shorter one', () => {
    fc.assert(
      fc.property(steps, step, (list, next) => {
        const messages = new MessageList('bytes', format.conversationField)
        const tail = format.tail({ streamed: true, toolChoice: undefined, previousResponseId: null }, GIVEN)
        const bytes = (): Buffer => Buffer.concat(messages.finish(tail) as readonly Uint8Array[])
        messages.open(format.head(GIVEN), [...format.opening(GIVEN), ...format.encode(list.flat(), GIVEN)])
        const shorter = bytes()
        messages.append(format.encode(next, GIVEN))
        const longer = bytes()

        const closing = Buffer.byteLength(JSON.stringify(tail).slice(1)) + 2
        const shared = shorter.length - closing
        expect(longer.subarray(0, shared).equals(shorter.subarray(0, shared))).toBe(true)
        expect(JSON.parse(longer.toString())).toEqual(
          JSON.parse(JSON.stringify(bodyOf(format, [...list, next].flat(), GIVEN, true))),
        )
      }),
    )
  })

  test('RS-05 every call is followed by its results, in order and under the same id', () => {
    fc.assert(
      fc.property(steps, (list) => {
        const messages = format.encode(list.flat(), GIVEN)
        for (const [index, each] of messages.entries()) {
          const ids = ((each['tool_calls'] ?? []) as readonly { readonly id: string }[]).map(({ id }) => id)
          const results = messages.slice(index + 1, index + 1 + ids.length)
          expect(results.map((one) => one['tool_call_id'])).toEqual(ids)
        }
      }),
    )
  })

  test('every request conforms to the published schema', () => {
    const api: RequestApi = name === 'claude' || name === 'openrouter' ? 'openrouter-chat' : 'openai-chat'
    const allow = ['reasoning', 'cache_control']
    fc.assert(
      fc.property(steps, fc.boolean(), (list, streamed) => {
        const body = bodyOf(format, [user('Hello'), ...list.flat()], GIVEN, streamed)
        // Blocks of thinking are the server's own, and nothing that OpenAI knows.
        const known = { ...body, messages: (body['messages'] as readonly JsonObject[]).map(withoutThinking) }
        expectValidRequest(api, JSON.parse(JSON.stringify(known)), { allow })
      }),
      rounds(60),
    )
  })
})

test('a request to OpenAI has no field that its client does not know', () => {
  const format = formatOf(DIALECTS.openai)
  const plain = message.map(({ content: given, ...others }) => {
    return { content: Array.isArray(given) ? 'A' : given, refusal: others.refusal, tool_calls: others.tool_calls }
  })
  fc.assert(
    fc.property(fc.array(plain, { minLength: 1, maxLength: 3 }), content, (messages, parts) => {
      const entries = messages.flatMap((each) => {
        const entry = assistant(decode(replyOf(each)).parts)
        return [user(...parts), entry, ...toolCallsOf(entry.parts).map((one) => resultOf(one, null))]
      })
      expectValidRequest('openai-chat-sdk', JSON.parse(JSON.stringify(bodyOf(format, entries, GIVEN, true))))
    }),
    rounds(60),
  )
})

function withoutThinking({ content: given, ...others }: JsonObject): JsonObject {
  if (!Array.isArray(given)) return { ...others, ...(given !== undefined && { content: given }) }
  const blocks = (given as readonly unknown[]).filter((block) => isObject(block) && block['type'] !== 'thinking')
  return { ...others, content: blocks.length === 0 ? '' : (blocks as JsonObject[]) }
}
