import { describe, expect, test } from 'vitest'
import { HarnessError, ModelRetry } from '#contracts/errors.js'
import { failureOf } from '#core/tools/boundary/invoke.js'
import type { ToolOutcome } from '#core/tools/tool-spec.js'
import { outcomeOf, ToolResult } from '#core/tools/tool-result.js'

const succeeded = (content: string): ToolOutcome => ({ kind: 'succeeded', content })
const image = { type: 'image', data: 'aGk=', mediaType: 'image/png' } as const

class Money {
  readonly #cents = 5
  readonly currency = 'EUR'
  toJSON(): unknown {
    return { amount: this.#cents / 100, currency: this.currency }
  }
}

const circular: Record<string, unknown> = { name: 'a' }
circular['self'] = circular
const shared = { n: 1 }
const revoked = Proxy.revocable({}, {})
revoked.revoke()

describe('the result of a handler', () => {
  test.each<[string, unknown, string]>([
    ['a string as it is', 'a "b"\n', 'a "b"\n'],
    ['an empty string too', '', ''],
    ['nothing in a sentence', undefined, 'The tool ran and returned nothing.'],
    ['null', null, 'null'],
    ['a number', 1.5, '1.5'],
    ['a boolean', false, 'false'],
    [
      'an object as compact JSON, in the order of its keys',
      { b: [{ z: 1, a: 'é' }], a: null },
      '{"b":[{"z":1,"a":"é"}],"a":null}',
    ],
    ['an empty list', [], '[]'],
    ['fields without a value left out, items kept', { a: undefined, b: [undefined] }, '{"b":[null]}'],
    [
      'what has a JSON form in that form',
      [new Date(0), new Money(), new URL('http://a/')],
      '["1970-01-01T00:00:00.000Z",{"amount":0.05,"currency":"EUR"},"http://a/"]',
    ],
    ['numbers that JSON lacks as text', [NaN, -Infinity, 10n ** 20n], '["NaN","-Infinity","100000000000000000000"]'],
    ['a bigint', 5n, '"5"'],
    ['what is no data by its name', [() => 1, Symbol('s'), /a+/g], '["[function]","Symbol(s)","/a+/g"]'],
    ['a function', function named() {}, '"[function]"'],
    ['a circle cut', circular, '{"name":"a","self":"[circular]"}'],
    ['what is there twice, twice', [shared, shared], '[{"n":1},{"n":1}]'],
    [
      'a map of names as an object',
      new Map([
        ['b', 1],
        ['a', 2],
      ]),
      '{"b":1,"a":2}',
    ],
    ['another map as pairs', new Map([[1, 'a']]), '[[1,"a"]]'],
    ['a set as a list', new Set(['a']), '["a"]'],
    ['an error by name and message', { error: new RangeError('too far') }, '{"error":"RangeError: too far"}'],
    ['bytes by their number', Buffer.from('hello'), '"[5 bytes of binary data]"'],
    [
      'a getter that throws in its place',
      {
        get a(): never {
          throw new Error('no')
        },
        b: 1,
      },
      '{"a":"[unreadable: no]","b":1}',
    ],
    [
      'a JSON form that throws in its place',
      {
        a: {
          toJSON: () => {
            throw new Error('no')
          },
        },
      },
      '{"a":"[unreadable: no]"}',
    ],
    [
      'a JSON form without end',
      (() => {
        const a = { toJSON: (): unknown => ({ ...a }) }
        return a
      })(),
      '"[nested too deeply to be shown]"',
    ],
    ['an object that cannot be looked at', [revoked.proxy], expect.stringContaining('[unreadable: ') as string],
    ['a field named like a prototype', JSON.parse('{"__proto__": {"a": 1}}'), '{"__proto__":{"a":1}}'],
    ['an object without a prototype', Object.assign(Object.create(null) as object, { a: 1 }), '{"a":1}'],
  ])('%s', (_name, returned, content) => {
    expect(outcomeOf(returned)).toMatchObject(succeeded(content))
  })

  test('depth and number of values are bounded', () => {
    let deep: unknown = 'end'
    for (let level = 0; level < 100_000; level++) deep = [deep]
    let many: unknown = 'x'.repeat(100)
    for (let level = 0; level < 40; level++) many = [many, many]

    expect(outcomeOf(deep)).toMatchObject({
      kind: 'succeeded',
      content: expect.stringContaining('[nested too deeply to be shown]') as string,
    })
    expect(outcomeOf(many)).toMatchObject({
      kind: 'succeeded',
      content: expect.stringContaining('[more was left out]') as string,
    })
  })

  test('a list of 300,000 values is whole', () => {
    const rows = Array.from({ length: 300_000 }, (_, index) => index)
    expect(outcomeOf(rows)).toMatchObject({ kind: 'succeeded', content: JSON.stringify(rows) })
  })

  test('a string that occurs a million times does not break the result', () => {
    const outcome = outcomeOf(new Array(1_000_000).fill('x'.repeat(10_000)))

    expect(outcome).toMatchObject({
      kind: 'succeeded',
      content: expect.stringContaining('characters left out]') as string,
    })
  })
})

describe('ToolResult', () => {
  test('it holds more than a value', () => {
    const result = new ToolResult({ content: 'ok', metadata: { rows: 2 }, parts: [image] })

    expect(result).toMatchObject({ ok: true, content: 'ok', metadata: { rows: 2 }, parts: [image] })
    expect(outcomeOf(result)).toEqual({ kind: 'succeeded', content: 'ok', metadata: { rows: 2 }, parts: [image] })
  })

  test('content that is not a string becomes JSON', () => {
    expect(new ToolResult({ content: { b: 1, a: 2 } }).content).toBe('{"b":1,"a":2}')
  })

  test('a failure names its class, and may ask for a retry', () => {
    const metadata = { error_type: 'Stale', retry: true, tool: 'x' }

    expect(outcomeOf(new ToolResult({ ok: false, content: 'Read it again.', metadata }))).toEqual({
      kind: 'failed',
      errorType: 'Stale',
      retry: true,
      content: 'Read it again.',
      metadata,
    })
    expect(outcomeOf(new ToolResult({ ok: false, content: 'No.' }))).toEqual({
      kind: 'failed',
      errorType: 'ToolError',
      retry: false,
      content: 'No.',
      metadata: {},
    })
  })

  test('metadata becomes JSON, in its order', () => {
    const metadata = { z: 1, a: new Map([['b', 2n]]), f: () => 1 }

    expect(JSON.stringify(new ToolResult({ content: '', metadata: metadata }).metadata)).toBe(
      '{"z":1,"a":{"b":"2"},"f":"[function]"}',
    )
  })

  test.each<[string, unknown, string]>([
    ['no object', 'text', 'Expected the options of `ToolResult` to be an object, got `text`.'],
    ['an unknown field', { content: '', meta: {} }, 'Unknown option of `ToolResult`: `meta`.'],
    ['a flag that is none', { content: '', ok: 'yes' }, 'Expected `ok` of `ToolResult` to be a boolean, got `yes`.'],
    [
      'metadata that are no object',
      { content: '', metadata: [1] },
      'Expected `metadata` of `ToolResult` to be an object, got ',
    ],
    [
      'parts that are no list',
      { content: '', parts: image },
      'Expected `parts` of `ToolResult` to be a list of content parts, got ',
    ],
    [
      'bytes where base64 is wanted',
      { content: '', parts: [image, { ...image, data: Buffer.from('a') }] },
      'Expected `parts[1]` of `ToolResult` to be a content part: ',
    ],
    [
      'a part of an unknown kind',
      { content: '', parts: [{ type: 'video', data: '', mediaType: '' }] },
      'Expected `parts[0]` of `ToolResult`',
    ],
  ])('%s is rejected', (_name, fields, message) => {
    const make = (): unknown => new ToolResult(fields as never)

    expect(make).toThrow(HarnessError)
    expect(make).toThrow(message)
  })
})

describe('an outcome returned by a handler', () => {
  test.each<[string, ToolOutcome]>([
    ['success', { kind: 'succeeded', content: 'a', metadata: { b: 1 }, parts: [image] }],
    ['failure', { kind: 'failed', errorType: 'NotFound', content: 'gone', retry: false }],
  ])('%s is used as it is', (_name, outcome) => {
    expect(outcomeOf(outcome)).toBe(outcome)
  })

  test.each<[string, Record<string, unknown>]>([
    ['the state of an order', { kind: 'cancelled', reason: 'by the customer' }],
    ['a rejected payment', { kind: 'rejected', reason: null }],
    ['an outcome with a field of its own', { kind: 'succeeded', content: 'a', id: 1 }],
    ['a failure without a class', { kind: 'failed', content: 'a' }],
    ['content that is no text', { kind: 'succeeded', content: 1 }],
  ])('%s is data', (_name, data) => {
    expect(outcomeOf(data)).toMatchObject({
      kind: 'succeeded',
      content: expect.stringContaining('"kind":"') as string,
    })
  })
})

describe('an exception of a handler', () => {
  class PathValidationError extends Error {
    override readonly name = 'PathValidationError'
  }
  const odd = new Error('x')
  Object.defineProperty(odd, 'message', {
    get: () => {
      throw new Error('no')
    },
  })
  Object.defineProperty(odd, 'name', { value: 5 })

  test.each<[string, unknown, ToolOutcome]>([
    [
      'TR-01 a `ModelRetry` becomes a retryable failure with its message',
      new ModelRetry('Try b.'),
      { kind: 'failed', errorType: 'ModelRetry', content: 'Try b.', retry: true },
    ],
    [
      'HC-38 an error becomes a failure with its name and message',
      new TypeError('bad'),
      { kind: 'failed', errorType: 'TypeError', content: 'TypeError: bad', retry: false },
    ],
    [
      'an error by the name of its class',
      new PathValidationError('outside'),
      { kind: 'failed', errorType: 'PathValidationError', content: 'PathValidationError: outside', retry: false },
    ],
    ['a text', 'boom', { kind: 'failed', errorType: 'Error', content: 'Error: boom', retry: false }],
    ['nothing', undefined, { kind: 'failed', errorType: 'Error', content: 'Error: unknown error', retry: false }],
    [
      'an object with a message',
      { message: 'm', stack: 's' },
      { kind: 'failed', errorType: 'Error', content: 'Error: m', retry: false },
    ],
    [
      'an error that cannot be read',
      odd,
      { kind: 'failed', errorType: 'Error', content: 'Error: unknown error', retry: false },
    ],
  ])('%s', (_name, thrown, outcome) => {
    expect(failureOf(thrown)).toEqual(outcome)
  })

  test('its message is bounded, without a stack', () => {
    const { content } = failureOf(new Error('😀'.repeat(5_000)))

    expect(content.length).toBeLessThanOrEqual(1_200)
    expect(content).toMatch(/^Error: (😀)+…$/u)
    expect(failureOf(new Error('a')).content).not.toContain(' at ')
  })
})
