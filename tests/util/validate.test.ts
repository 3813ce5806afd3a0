import { describe, expect, expectTypeOf, test } from 'vitest'
import { parse } from '#contracts/parse.js'
import {
  anything,
  boolean,
  either,
  functionOf,
  having,
  integer,
  jsonObject,
  list,
  matching,
  milliseconds,
  nullable,
  number,
  object,
  oneOf,
  optional,
  partial,
  parseAs,
  record,
  secret,
  string,
  union,
  where,
} from '#util/validate.js'
import type { Shape } from '#util/validate.js'

interface Address {
  readonly street: string
  readonly number: number | null
  readonly country?: string
}

const address = object<Address>({ street: string, number: nullable(integer(1)), country: optional(string) })

type Figure = { readonly kind: 'circle'; readonly radius: number } | { readonly kind: 'square'; readonly side: number }

const figure = union<Figure, 'kind'>('kind', {
  circle: object<Extract<Figure, { kind: 'circle' }>>({ kind: oneOf('circle'), radius: number(0) }),
  square: object<Extract<Figure, { kind: 'square' }>>({ kind: oneOf('square'), side: number(0) }),
})

describe('A value that fits', () => {
  test('is returned as a copy, without the fields that are `undefined`', () => {
    const given = { street: 'Elm', number: null, country: undefined }

    const read = parse(address, given, '`house`')

    expectTypeOf(read).toEqualTypeOf<Address>()
    expect(read).toStrictEqual({ street: 'Elm', number: null })
    expect(read).not.toBe(given)
  })

  test.each<[string, (value: unknown) => unknown, unknown]>([
    ['a string', reading(string), ''],
    ['a boolean', reading(boolean), false],
    ['the least whole number', reading(integer(0)), 0],
    ['the longest time', reading(milliseconds), 2_147_483_647],
    ['a number with a fraction', reading(number(0, 1)), 0.5],
    ['a list', reading(list(string)), ['a']],
    ['a record', reading(record(integer())), { a: -1 }],
    ['a record with a name from the prototype', reading(record(integer())), JSON.parse('{"__proto__":1}')],
    ['null', reading(nullable(string)), null],
    ['the second of two shapes', reading(either(string, list(string))), ['a']],
    ['a member of a union', reading(figure), { kind: 'square', side: 2 }],
    ['plain JSON', reading(jsonObject), { a: [1, { b: null }] }],
    ['a form', reading(matching(/^a+$/, 'some a')), 'aaa'],
  ])('may be %s', (_name, read, value) => {
    expect(read(value)).toStrictEqual(value)
  })

  test('keeps functions and instances unchanged', () => {
    class Port {
      send(): void {}
    }
    const given = { port: new Port(), send: () => undefined, at: new Date(0) }
    const shape = object<{ port: Port; send: () => void; at: Date }>({
      port: having('a port', 'send'),
      send: functionOf(),
      at: anything(),
    })

    const read = parse(shape, given, '`it`')

    expect(read.port).toBe(given.port)
    expect(read.send).toBe(given.send)
    expect(read.at).toBe(given.at)
  })
})

describe('An invalid value is rejected with its part, the expected and the received value', () => {
  test.each<[string, (value: unknown) => unknown, unknown, string]>([
    [
      'a string for a number',
      reading(partial<{ a?: number }>({ a: integer(0) })),
      { a: '5' },
      'Expected `a` of `it` to be a whole number from 0 up, got the string `5`.',
    ],
    ['nothing for a field', reading(address), { number: 1 }, 'Expected `street` of `it` to be a string, got nothing.'],
    ['no object', reading(address), 'Elm 1', 'Expected the options of `it` to be an object, got `Elm 1`.'],
    [
      'an unknown field',
      reading(address),
      { street: 'a', number: 1, contry: 'x' },
      'Unknown option of `it`: `contry`. Did you mean `country`?',
    ],
    [
      'an unknown field further down',
      reading(list(address)),
      [{ strt: 1 }],
      'Unknown option of `it`: `[0].strt`. Did you mean `street`?',
    ],
    [
      'a member of a list',
      reading(record(list(string))),
      { a: ['b', 7] },
      'Expected `a[1]` of `it` to be a string, got `7`.',
    ],
    ['an odd key', reading(record(string)), { 'a b': 7 }, "Expected `['a b']` of `it` to be a string, got `7`."],
    [
      'a word that is not known',
      reading(record(oneOf('fail', 'answer'))),
      { on: 'fial' },
      'Expected `on` of `it` to be one of `fail`, `answer`, got `fial`. Did you mean `fail`?',
    ],
    [
      'a number that is too large',
      reading(record(milliseconds)),
      { a: 2 ** 31 },
      'Expected `a` of `it` to be a whole number from 1 to 2147483647, got `2147483648`.',
    ],
    ['no number', reading(record(number())), { a: NaN }, 'Expected `a` of `it` to be a number, got `NaN`.'],
    [
      'neither of two',
      reading(record(either(boolean, list(string, 'a list of hosts')))),
      { a: {} },
      'Expected `a` of `it` to be a boolean or a list of hosts, got an object.',
    ],
    [
      'a part of one of two',
      reading(record(either(boolean, list(string)))),
      { a: [1] },
      'Expected `a[0]` of `it` to be a string, got `1`.',
    ],
    [
      'neither null nor a string',
      reading(record(nullable(string))),
      { a: [] },
      'Expected `a` of `it` to be a string or `null`, got an empty list.',
    ],
    [
      'an unknown kind',
      reading(figure),
      { kind: 'cirle' },
      'Expected `kind` of `it` to be one of `circle`, `square`, got `cirle`. Did you mean `circle`?',
    ],
    [
      'a member of a union',
      reading(figure),
      { kind: 'circle', radius: -1 },
      'Expected `radius` of `it` to be a number from 0 up, got `-1`.',
    ],
    ['no function', reading(record(functionOf())), { a: null }, 'Expected `a` of `it` to be a function, got `null`.'],
    [
      'an object without a method',
      reading(record(having<Date>('a date', 'getTime'))),
      { a: {} },
      'Expected `a` of `it` to be a date, got an object.',
    ],
    [
      'a rule of its own',
      reading(record(where(string, 'an absolute path', (path) => path.startsWith('/')))),
      { a: 'b' },
      'Expected `a` of `it` to be an absolute path, got `b`.',
    ],
    [
      'a secret',
      reading(record(secret(matching(/^\w+$/, 'a key')))),
      { a: 'se cret' },
      'Expected `a` of `it` to be a key, got something else.',
    ],
  ])('%s', (_name, read, value, message) => {
    expect(() => read(value)).toThrow(
      expect.objectContaining({ name: 'HarnessError', code: 'invalid_options', message }) as Error,
    )
  })

  test('without an error, if the caller needs none', () => {
    expect(parseAs(address, { street: 5 }, 'the answer')).toStrictEqual({
      ok: false,
      problem: 'Expected `street` of the answer to be a string, got `5`.',
      path: ['street'],
    })
    expect(parseAs(string, 5, 'the answer')).toMatchObject({ problem: 'Expected the answer to be a string, got `5`.' })
    expect(parseAs(address, { x: 5 }, 'the answer')).toMatchObject({ problem: 'Unknown field of the answer: `x`.' })
    expect(parseAs(string, 'a', 'the answer')).toStrictEqual({ ok: true, value: 'a' })
  })
})

test('A shape is tied to its type: missing, extra and wrong fields do not compile', () => {
  // @ts-expect-error: `number` has no shape
  object<Address>({ street: string, country: optional(string) })
  // @ts-expect-error: `country` may be left out
  object<Address>({ street: string, number: nullable(integer(1)), country: string })
  // @ts-expect-error: `street` may not be left out
  object<Address>({ street: optional(string), number: nullable(integer(1)), country: optional(string) })
  // @ts-expect-error: `number` may be null
  object<Address>({ street: string, number: integer(1), country: optional(string) })
  // @ts-expect-error: there is no `town`
  object<Address>({ street: string, number: nullable(integer(1)), country: optional(string), town: string })
  // @ts-expect-error: `street` may not be left out
  partial<Address>({ street: string, number: nullable(integer(1)), country: string })
  // @ts-expect-error: `c` is missing
  object<{ mode: 'a' | 'b' | 'c' }>({ mode: oneOf('a', 'b') })
  // @ts-expect-error: `c` is too much
  object<{ mode: 'a' | 'b' }>({ mode: oneOf('a', 'b', 'c') })
  // @ts-expect-error: it may be a number
  object<{ either: string | number | boolean }>({ either: either(string, boolean) })
  // @ts-expect-error: `square` is missing
  union<Figure, 'kind'>('kind', {
    circle: object<Extract<Figure, { kind: 'circle' }>>({ kind: oneOf('circle'), radius: number() }),
  })

  object<{
    mode: 'a' | 'b'
    either: string | number
    list: readonly string[]
    record: Readonly<Record<string, boolean>>
  }>({
    mode: oneOf('a', 'b'),
    either: either(string, number()),
    list: list(string),
    record: record(boolean),
  })
})

function reading<T>(shape: Shape<T>): (value: unknown) => unknown {
  return (value) => parse(shape, value, '`it`')
}
