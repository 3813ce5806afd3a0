import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { EventReader } from '#providers/http/sse-reader.js'
import type { WireChunk } from '#providers/http/wire-format.js'
import { rounds } from '../../support/length.js'

/** The events and the failure of a stream that arrives in these pieces. */
function read(pieces: readonly Uint8Array[]): { events: WireChunk[]; failure: string | null } {
  const reader = new EventReader()
  const events: WireChunk[] = []
  for (const piece of pieces) {
    events.push(...reader.push(piece))
    if (reader.failure !== null) return { events, failure: reader.failure.message }
  }
  events.push(...reader.end())
  return { events, failure: reader.failure?.message ?? null }
}

const readText = (text: string): ReturnType<typeof read> => read([Buffer.from(text)])

function cutAt(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const cuts = [0, ...[...places].sort((a, b) => a - b), bytes.length].map((place) => Math.min(place, bytes.length))
  return cuts.slice(1).map((to, index) => bytes.subarray(cuts[index], to))
}

test.each<[string, string, WireChunk[]]>([
  ['LF', 'event: a\ndata: {"n":1}\n\n', [{ event: 'a', data: { n: 1 } }]],
  ['CRLF', 'event: a\r\ndata: {"n":1}\r\n\r\n', [{ event: 'a', data: { n: 1 } }]],
  ['CR', 'event: a\rdata: {"n":1}\r\r', [{ event: 'a', data: { n: 1 } }]],
  ['no space after the colon', 'event:a\ndata:{"n":1}\n\n', [{ event: 'a', data: { n: 1 } }]],
  ['one space only is no part of the value', 'data:  " x"\n\n', [{ event: null, data: ' x' }]],
  ['comments', ': PROCESSING\n\ndata: 1\n: ping\n\n', [{ event: null, data: 1 }]],
  ['other fields', 'id: 7\nretry: 10\ndatum: 2\ndata: 1\n\n', [{ event: null, data: 1 }]],
  ['data of several lines', 'data: {"a":\ndata: [1,\ndata: 2]}\n\n', [{ event: null, data: { a: [1, 2] } }]],
  ['a byte order mark', '\uFEFFdata: 1\n\n', [{ event: null, data: 1 }]],
  [
    '[DONE]',
    'data: 1\n\ndata: [DONE]\n\n',
    [
      { event: null, data: 1 },
      { event: null, data: null },
    ],
  ],
  ['an event without data', 'event: ping\n\ndata: 1\n\n', [{ event: null, data: 1 }]],
  ['empty data', 'data:\n\ndata: \n\ndata: 1\n\n', [{ event: null, data: 1 }]],
  [
    'the name holds for one event',
    'event: a\ndata: 1\n\ndata: 2\n\n',
    [
      { event: 'a', data: 1 },
      { event: null, data: 2 },
    ],
  ],
  [
    'a last event without its blank line',
    'data: 1\n\ndata: 2\n',
    [
      { event: null, data: 1 },
      { event: null, data: 2 },
    ],
  ],
  [
    'a last event without its line end',
    'data: 1\n\ndata: [DONE]',
    [
      { event: null, data: 1 },
      { event: null, data: null },
    ],
  ],
  ['a last event that was cut', 'data: 1\n\ndata: {"a":', [{ event: null, data: 1 }]],
  ['nothing', '', []],
])('a stream is read: %s', (_name, text, events) => {
  expect(readText(text)).toEqual({ events, failure: null })
  const bytes = Buffer.from(text)
  expect(read(Array.from(bytes, (_byte, at) => bytes.subarray(at, at + 1)))).toEqual({ events, failure: null })
})

test('an LF after a CR belongs to it only when nothing is between', () => {
  const pieces = ['data: 1\r', '\r', '', 'data: 2', '\n', '\ndata: 3\r', '', '\n\r', '\n'].map((text) =>
    Buffer.from(text),
  )
  expect(read(pieces).events.map((event) => event.data)).toEqual([1, 2, 3])
  const reader = new EventReader()
  reader.push(Buffer.from(': x\r'))
  reader.push(Buffer.from('data: 4'))
  expect(reader.push(Buffer.from('\n\n'))).toEqual([{ event: null, data: 4 }])
})

test('all events of one chunk arrive together', () => {
  const reader = new EventReader()
  expect(reader.push(Buffer.from('data: 1\n\ndata: 2\n\ndata: 3'))).toHaveLength(2)
  expect(reader.push(Buffer.from('4\n\n'))).toEqual([{ event: null, data: 34 }])
})

describe('malformed streams', () => {
  test('PR-25 data that is not JSON is a retryable error, after the preceding events', () => {
    const { events, failure } = readText('data: 1\n\ndata: {"text": oops\n\ndata: 2\n\n')
    expect(events).toEqual([{ event: null, data: 1 }])
    expect(failure).toBe('The provider sent a stream event that is not JSON: {"text": oops')
    const reader = new EventReader()
    reader.push(Buffer.from('data: {\n\n'))
    expect(reader.failure).toMatchObject({ code: 'provider_error', retryable: true })
  })

  test('PR-25 the error shows a bounded excerpt of the data', () => {
    expect(readText(`data: <${'x'.repeat(100_000)}\n\n`).failure?.length).toBeLessThan(300)
  })

  test('an error event may be plain text', () => {
    expect(readText('event: error\ndata: upstream timed out\n\n').failure).toBe('upstream timed out')
  })

  test('an event without end is rejected at 64 MiB, and not kept', () => {
    const reader = new EventReader()
    const piece = Buffer.alloc(8 * 1024 * 1024, 'x')
    reader.push(Buffer.from('data: '))
    for (let count = 0; count < 7; count++) expect([reader.push(piece), reader.failure]).toEqual([[], null])
    reader.push(piece)
    expect(reader.failure?.message).toBe('The provider sent a stream event of more than 67108864 characters.')
  })

  test('an event of endless lines is rejected too', () => {
    const reader = new EventReader()
    const lines = Buffer.from(`data: ${'x'.repeat(1024 * 1024)}\n`.repeat(8))
    for (let count = 0; count < 8; count++) reader.push(lines)
    expect(reader.failure?.message).toContain('67108864 characters')
  })
})

test('a huge event costs linear time', () => {
  const time = (megabytes: number): number => {
    const bytes = Buffer.from(`data: "${'x'.repeat(megabytes * 1024 * 1024)}"\n\n`)
    const from = process.cpuUsage()
    const { events } = read(
      cutAt(
        bytes,
        Array.from({ length: bytes.length / 1024 }, (_, index) => index * 1024),
      ),
    )
    expect(events).toHaveLength(1)
    const { user, system } = process.cpuUsage(from)
    return user + system
  }
  time(1)
  const small = time(2)
  // Sixteen times the length: quadratic would be 256 times the cost.
  expect(time(32)).toBeLessThan(80 * Math.max(small, 2000))
})

/** Streams as servers write them, and as they should not. */
const lineEnd = fc.constantFrom('\n', '\r\n', '\r')
const json = fc.oneof(
  fc.json({ maxDepth: 2 }),
  fc.string({ unit: 'grapheme' }).map((text) => JSON.stringify({ text })),
)
const line = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(fc.constantFrom('data:', 'data: '), json).map(([name, value]) => name + value) },
  fc.constantFrom(': comment', 'event: delta', 'event:x', 'id: 3', 'retry: 5', 'data: [DONE]', 'other: thing'),
)
const block = fc.tuple(fc.array(line, { maxLength: 3 }), lineEnd).map(([lines, end]) => {
  // One line of data an event: two JSON texts below each other are no JSON.
  const data = lines.findIndex((each) => each.startsWith('data'))
  return lines.filter((each, index) => index === data || !each.startsWith('data')).join(end) + end + end
})
const streamText = fc.tuple(fc.constantFrom('', '\uFEFF'), fc.array(block, { maxLength: 8 }))

test('any split of the bytes yields the same events', () => {
  fc.assert(
    fc.property(streamText, fc.array(fc.nat(400), { maxLength: 30 }), ([mark, blocks], places) => {
      const bytes = Buffer.from(mark + blocks.join(''))
      expect(read(cutAt(bytes, places))).toEqual(read([bytes]))
    }),
    rounds(500),
  )
})
