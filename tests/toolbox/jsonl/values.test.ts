import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compareDates, orderDates, parseDate } from '#toolbox/jsonl/date-value.js'
import { compareDecimals, parseDecimal } from '#toolbox/jsonl/decimal.js'
import { parseFieldPath, valueAt } from '#toolbox/jsonl/field-path.js'
import { normalizedJson, sourceAt, withoutNonFinite } from '#toolbox/jsonl/json-source.js'
import { parseRow } from '#toolbox/jsonl/row.js'
import { pathOf, rowOf } from './support.js'

describe('field paths', () => {
  test.each<[string, (string | number)[]]>([
    ['status', ['status']],
    ['user.name', ['user', 'name']],
    ['.user.name', ['user', 'name']],
    ['tags[0].id', ['tags', 0, 'id']],
    ['tags.[-1]', ['tags', -1]],
    ['["any key"]', ['any key']],
    ['a[\'b.c\']["d"]', ['a', 'b.c', 'd']],
    ['a[""]', ['a', '']],
    ['_x1', ['_x1']],
  ])('%j', (text, steps) => {
    expect(pathOf(text).steps).toEqual(steps)
  })

  test.each([
    ['', 'the path is empty (at character 1)'],
    ['.', '`.` cannot be read at character 1'],
    ['a..b', '`a..b` cannot be read at character 2'],
    ['a b', '`a b` cannot be read at character 2'],
    ['1a', '`1a` cannot be read at character 1'],
    ['a[x]', '`a[x]` cannot be read at character 2'],
    ['a[1', '`a[1` cannot be read at character 2'],
    ['a.', '`a.` cannot be read at character 2'],
    ['ä', '`ä` cannot be read at character 1'],
  ])('%j is rejected', (text, problem) => {
    expect(parseFieldPath(text)).toEqual({ ok: false, problem })
  })

  test('an index is for arrays, a key for objects, and nothing is inherited', () => {
    const value = JSON.parse('{"a":[1,{"b":2}],"s":"text","__proto__":{"p":1}}') as unknown
    const at = (text: string): unknown => valueAt(value, pathOf(text))
    expect([
      at('a[1].b'),
      at('a[-2]'),
      at('a.b'),
      at('a.length'),
      at('s[0]'),
      at('toString'),
      at('__proto__.p'),
    ]).toEqual([2, 1, undefined, undefined, undefined, undefined, 1])
  })
})

describe('JSON as it was written', () => {
  /** JSON text with spaces, escapes and numbers of many forms. */
  const space = fc.constantFrom('', '', ' ', '\t', '  ')
  const scalar = fc.oneof(
    fc.constantFrom(
      '1',
      '1.0',
      '-0',
      '1e5',
      '12345678901234567890',
      '0.1000',
      'true',
      'false',
      'null',
      'NaN',
      '-Infinity',
    ),
    fc
      .string({ unit: fc.constantFrom('a', '"', '\\', '{', '}', '[', ',', ':', '\n', 'é', '😀', 'NaN') })
      .map((text) => JSON.stringify(text)),
    fc.constantFrom('"\\u0041"', '"\\/"', '"\\ud83d\\ude00"', '""'),
  )
  const key = fc.constantFrom('a', 'b', 'c d', 'é', '"').map((text) => JSON.stringify(text))
  const json = fc.letrec<{ node: string }>((tie) => ({
    node: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      scalar,
      fc.tuple(space, fc.array(fc.tuple(space, tie('node'), space), { maxLength: 3 })).map(([inside, items]) => {
        return `[${inside}${items.map((item) => item.join('')).join(',')}]`
      }),
      fc
        .tuple(space, fc.array(fc.tuple(space, key, space, space, tie('node'), space), { maxLength: 3 }))
        .map(([inside, items]) => {
          return `{${inside}${items.map(([s1, k, s2, s3, v, s4]) => `${s1}${k}${s2}:${s3}${v}${s4}`).join(',')}}`
        }),
    ),
  })).node

  /** Every path into a value. */
  function pathsIn(value: unknown, steps: readonly (string | number)[] = []): (readonly (string | number)[])[] {
    if (Array.isArray(value)) {
      const items = value as unknown[]
      return [
        steps,
        ...items.flatMap((item, index) => [...pathsIn(item, [...steps, index]), [...steps, index - items.length]]),
      ]
    }
    if (typeof value !== 'object' || value === null) return [steps]
    return [steps, ...Object.entries(value).flatMap(([name, item]) => pathsIn(item, [...steps, name]))]
  }

  test('the source of every value is found, and is that value', () => {
    fc.assert(
      fc.property(json, (text) => {
        const { value } = rowOf(text)
        for (const steps of pathsIn(value)) {
          const source = sourceAt(text, steps)
          expect(JSON.parse(withoutNonFinite(source ?? ''))).toEqual(valueAt(value, { text: '', steps }))
        }
        expect(sourceAt(text, ['absent'])).toBeUndefined()
        expect(sourceAt(text, [99])).toBeUndefined()
      }),
    )
  })

  test('the shown form has the same value, one spacing, and the numbers as they were', () => {
    fc.assert(
      fc.property(json, (text) => {
        const shown = normalizedJson(text)
        expect(normalizedJson(shown)).toBe(shown)
        expect(JSON.parse(withoutNonFinite(shown))).toEqual(rowOf(text).value)
      }),
    )
    expect(normalizedJson(' {"id" :1.0,"a":[ 1,2 ,{}], "t":"\\u00e9\\n\\/é, x:y"} ')).toBe(
      '{"id": 1.0, "a": [1, 2, {}], "t": "é\\n/é, x:y"}',
    )
  })

  test.each(['', '{', '{"a":1', '{"a":NaNa}', '{a:1}', '"\n"', 'nan', 'NaN NaN', '{"a":01}', '[1,]'])(
    '%j is not a row',
    (text) => {
      expect(parseRow(text)).toBeUndefined()
    },
  )

  test('rows nested a million deep are read without a crash', () => {
    const deep = `{"a":${'['.repeat(1_000_000)}${']'.repeat(1_000_000)},"b":12345678901234567890}`
    const row = rowOf(deep)
    expect(sourceAt(row.text, ['b'])).toBe('12345678901234567890')
    expect(normalizedJson(row.text)).toHaveLength(deep.length + 3)
  })
})

describe('decimals', () => {
  const decimal = fc
    .tuple(fc.constantFrom('', '-'), fc.bigInt({ min: 0n, max: 10n ** 30n }), fc.integer({ min: -12, max: 12 }))
    .map(([sign, digits, power]) => ({
      text: `${sign}${digits}e${power}`,
      scaled: BigInt(`${sign}${digits}`) * 10n ** BigInt(power + 12),
    }))

  test('are compared as numbers of any size', () => {
    fc.assert(
      fc.property(decimal, decimal, (left, right) => {
        const order = compareDecimals(parseDecimal(left.text)!, parseDecimal(right.text)!)
        expect(Math.sign(order)).toBe(left.scaled < right.scaled ? -1 : left.scaled > right.scaled ? 1 : 0)
      }),
    )
  })

  test.each([
    ['1', '1.0'],
    ['1e2', '100'],
    ['-0', '0.000'],
    ['.5', '0.50'],
    ['5.', '5'],
    ['+7', '7'],
    ['1e999999999', '10e999999998'],
    ['0e999999999999999', '0'],
  ])('%s is %s', (left, right) => {
    expect(compareDecimals(parseDecimal(left)!, parseDecimal(right)!)).toBe(0)
  })

  test.each(['', '.', '-', 'e5', '1e', '1,5', '0x1', 'NaN', 'Infinity', '-inf', '1_000', ' 1', '1e9999999999999999'])(
    '%j is not one',
    (text) => {
      expect(parseDecimal(text)).toBeUndefined()
    },
  )
})

describe('dates', () => {
  test('are those of the calendar, in seconds since 1970', () => {
    fc.assert(
      fc.property(
        fc.date({ min: new Date('0001-01-01'), max: new Date('9999-12-31'), noInvalidDate: true }),
        (date) => {
          const iso = date.toISOString()
          expect(parseDate(iso.slice(0, 10))).toEqual({ kind: 'date', date: iso.slice(0, 10) })
          expect(parseDate(iso)).toMatchObject({ isAware: true, seconds: Math.floor(date.getTime() / 1000) })
        },
      ),
    )
  })

  test.each([
    ...[
      '2023-02-29',
      '2024-13-01',
      '2024-00-10',
      '2024-04-31',
      '2024-1-1',
      '20240101',
      '2024-01-01T',
      '2024-01-01T24:00:00Z',
    ],
    ...[
      '2024-01-01T10:60:00',
      '2024-01-01T10:00:60',
      '2024-01-01T10',
      '2024-01-01T10:00:00+24:00',
      '2024-01-01x',
      'today',
      '',
    ],
  ])('%j is not one', (text) => {
    expect(parseDate(text)).toBeUndefined()
  })

  test.each<[string, string, number | undefined]>([
    ['2024-01-01', '2024-01-02', -1],
    ['2024-01-02T23:00:00-05:00', '2024-01-02', 0],
    ['2024-01-02', '2024-01-02T00:30:00+09:00', 0],
    ['2024-01-01T12:00:00Z', '2024-01-01T13:00:00+01:00', 0],
    ['2024-01-01T12:00:00Z', '2024-01-01t12:00:00z', 0],
    ['2024-01-01T12:00', '2024-01-01 12:00:00.000', 0],
    ['2024-01-01T12:00:00.000000001', '2024-01-01T12:00:00', 1],
    ['2024-01-01T12:00:00.1Z', '2024-01-01T12:00:00.09Z', 1],
    ['2024-01-01T12:00:00Z', '2024-01-01T12:00:00', undefined],
  ])('%s and %s: %s', (left, right, order) => {
    const [first, second] = [parseDate(left)!, parseDate(right)!]
    const compared = compareDates(first, second)
    expect(compared === undefined ? undefined : Math.sign(compared)).toBe(order)
    expect(Math.sign(orderDates(first, second))).toBe(0 - Math.sign(orderDates(second, first)))
  })
})
