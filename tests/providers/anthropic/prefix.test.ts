import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { RequestConstants } from 'thinharness'
import { MessageList } from '#providers/wire/wire-session.js'
import type { AssistantPart, ContentPart, TranscriptEntry } from '#contracts/entry.js'
import { expectValidRequest } from '../../support/request-schemas.js'
import { assistant, bodyOf, CONSTANTS, format, tool, user } from './support.js'
import { rounds } from '../../support/length.js'

const anyText = fc.string({ unit: 'binary' })

const native = fc.constantFrom(
  {},
  { native: { provider: 'anthropic', data: { type: 'thinking', signature: 'sig' } } },
  { native: { provider: 'openai', data: { id: 'rs_1', text: 'seen' } } },
)

const part: fc.Arbitrary<AssistantPart> = fc.oneof(
  anyText.map((text) => ({ type: 'text', text }) as const),
  fc.record({ type: fc.constant('reasoning' as const), text: anyText }),
  fc.tuple(anyText, native).map(([text, more]) => ({ type: 'reasoning', text, ...more }) as const),
  fc.constant({
    type: 'opaque',
    native: { provider: 'anthropic', data: { type: 'container_upload', file_id: 'f' } },
  } as const),
  fc.constant({ type: 'opaque', native: { provider: 'openrouter', data: { refusal: 'No.' } } } as const),
)

const content: fc.Arbitrary<ContentPart> = fc.oneof(
  anyText.map((text) => ({ type: 'text', text }) as const),
  fc.constant({ type: 'image', data: 'iVBORw0KGgo=', mediaType: 'image/png' } as const),
  fc.constant({ type: 'file', data: 'aGk=', mediaType: 'text/csv', name: 'a.csv' } as const),
)

/** Entries that join a conversation together: a reply with its batch and its notice, or a user message. */
const joining: fc.Arbitrary<TranscriptEntry[]> = fc.oneof(
  fc.array(content, { maxLength: 3 }).map((parts) => [user(parts)]),
  fc
    .tuple(
      fc.array(part, { maxLength: 3 }),
      fc.array(
        fc.record({ arguments: fc.json(), result: fc.array(content, { maxLength: 2 }), isError: fc.boolean() }),
        { maxLength: 3 },
      ),
      fc.boolean(),
      fc.uuid(),
    )
    .map(([parts, calls, hasNotice, id]) => [
      assistant([
        ...parts,
        ...calls.map(
          (each, index) =>
            ({ type: 'tool_call', callId: `${id}:${index}`, name: 'read', arguments: each.arguments }) as const,
        ),
      ]),
      ...calls.map((each, index) => tool(`${id}:${index}`, each.result, each.isError)),
      ...(hasNotice ? [user('Soon.', true)] : []),
    ]),
)

const conversation = fc.array(joining, { maxLength: 6 })

const constants: RequestConstants = {
  ...CONSTANTS,
  instructions: 'Be brief.',
  tools: [{ name: 'read', description: 'Reads.', parameters: { type: 'object' } }],
}

test('entries that join are encoded together: encode(a) and encode(b) are encode(a and b)', () => {
  const wire = format()
  fc.assert(
    fc.property(conversation, (groups) => {
      expect(groups.flatMap((group) => wire.encode(group, constants))).toEqual(wire.encode(groups.flat(), constants))
    }),
  )
})

test('the bytes of a request begin with those of the one before, up to the end of its messages', () => {
  const wire = format()
  fc.assert(
    fc.property(conversation, (groups) => {
      const list = new MessageList('bytes', wire.conversationField)
      list.open(wire.head(constants), wire.opening(constants))
      const bodies = groups.map((group) => {
        list.append(wire.encode(group, constants))
        const pieces = list.finish(
          wire.tail({ streamed: true, toolChoice: undefined, previousResponseId: null }, constants),
        )
        const [head, messages] = pieces as readonly Uint8Array[]
        return Buffer.concat([head!, messages!]).toString()
      })
      for (const [index, body] of bodies.entries()) expect(body.startsWith(bodies[index - 1] ?? '')).toBe(true)
    }),
  )
})

test('every request is valid, in both versions', () => {
  fc.assert(
    fc.property(conversation, fc.constantFrom('2023-06-01' as const, '2026-10-21' as const), (groups, version) => {
      const body = bodyOf(format({ version }), groups.flat(), constants)
      expectValidRequest('anthropic-messages', body, { version })
      const messages = body['messages'] as readonly { content: string | readonly unknown[] }[]
      for (const message of messages) expect(message.content.length).toBeGreaterThan(0)
    }),
    rounds(50),
  )
})
