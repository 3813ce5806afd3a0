import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compileFilter } from '#toolbox/jsonl/filter.js'
import type { WhereFilter } from '#toolbox/jsonl/filter.js'
import { needleOf } from '#toolbox/jsonl/needle.js'
import { textAt } from '#toolbox/jsonl/row.js'
import { pathOf, rowOf } from './support.js'
import { rounds } from '../../support/length.js'

const noPause = (): void => undefined

describe('filters', () => {
  const row = rowOf(
    '{"s":"paid","n":5,"f":1.0,"big":9007199254740993,"b":true,"z":null,"l":[1, 2],"o":{"id":1},"e":"","nan":NaN,"u":"caf\\u00e9","d":"2024-05-31"}',
  )

  test.each<[WhereFilter, boolean | 'incomparable']>([
    [{ field: 's', op: 'eq', value: 'paid' }, true],
    [{ field: 's', op: 'eq', value: 'Paid' }, false],
    [{ field: 'n', op: 'eq', value: '5' }, true],
    [{ field: 'n', op: 'eq', value: 5 }, true],
    [{ field: 'n', op: 'eq', value: '5.0' }, false],
    [{ field: 'f', op: 'eq', value: '1.0' }, true],
    [{ field: 'f', op: 'eq', value: '1' }, false],
    [{ field: 'big', op: 'eq', value: '9007199254740993' }, true],
    [{ field: 'big', op: 'eq', value: '9007199254740992' }, false],
    [{ field: 'b', op: 'eq', value: true }, true],
    [{ field: 'l', op: 'eq', value: '[1, 2]' }, true],
    [{ field: 'o', op: 'eq', value: '{"id": 1}' }, true],
    [{ field: 'e', op: 'eq', value: '' }, true],
    [{ field: 'nan', op: 'eq', value: 'NaN' }, true],
    [{ field: 'z', op: 'eq', value: 'null' }, false],
    [{ field: 's', op: 'ne', value: 'open' }, true],
    [{ field: 's', op: 'ne', value: 'paid' }, false],
    [{ field: 'z', op: 'ne', value: 'x' }, false],
    [{ field: 'missing', op: 'ne', value: 'x' }, false],
    [{ field: 's', op: 'in', values: ['open', 'paid'] }, true],
    [{ field: 'n', op: 'in', values: [1, 5] }, true],
    [{ field: 'missing', op: 'in', values: ['x'] }, false],
    [{ field: 'u', op: 'contains', value: 'fé' }, true],
    [{ field: 'l', op: 'contains', value: '1, 2' }, true],
    [{ field: 'o', op: 'contains', value: '"id": ' }, true],
    [{ field: 's', op: 'regex', value: '^p.*d$' }, true],
    [{ field: 's', op: 'regex', value: 'PAID' }, false],
    [{ field: 's', op: 'regex', value: '(?i)PAID' }, true],
    [{ field: 'n', op: 'exists' }, true],
    [{ field: 'nan', op: 'exists' }, true],
    [{ field: 'z', op: 'exists' }, false],
    [{ field: 'missing', op: 'exists' }, false],
    [{ field: 'n', op: 'eq', value: '5.00', type: 'number' }, true],
    [{ field: 'n', op: 'ne', value: 5, type: 'number' }, false],
    [{ field: 's', op: 'ne', value: 5, type: 'number' }, 'incomparable'],
    [{ field: 'big', op: 'gt', value: '9007199254740992', type: 'number' }, true],
    [{ field: 'big', op: 'gte', value: '9007199254740993', type: 'number' }, true],
    [{ field: 'big', op: 'lt', value: '9007199254740994', type: 'number' }, true],
    [{ field: 'big', op: 'lte', value: '9007199254740992', type: 'number' }, false],
    [{ field: 'n', op: 'gt', value: '-5', type: 'number' }, true],
    [{ field: 'd', op: 'lte', value: '2024-05-31T01:00:00Z', type: 'date' }, true],
    [{ field: 'd', op: 'lt', value: '2024-05-31', type: 'date' }, false],
    [{ field: 's', op: 'gt', value: '2024-05-31', type: 'date' }, 'incomparable'],
  ])('%j: %s', async (where, verdict) => {
    expect((await compileFilter(where)).test(row, noPause)).toBe(verdict)
  })

  test.each(['"5"', 'true', 'null', 'NaN', 'Infinity', '[]', '{}'])(
    'FT-59 a value that is not a JSON number is not compared with numbers: %s',
    async (value) => {
      const filter = await compileFilter({ field: 'x', op: 'gt', value: '1', type: 'number' })
      expect(filter.test(rowOf(`{"x":${value}}`), noPause)).toBe('incomparable')
      expect(filter.test(rowOf('{}'), noPause)).toBe('incomparable')
    },
  )

  test.each([
    ['1e400', 'gt', '1', true],
    ['-1e400', 'lt', '-1e399', true],
    ['1e-400', 'gt', '0', true],
    ['5.0000000000000000001', 'gt', '5', true],
    ['0.1', 'eq', '0.10', true],
    ['0.1', 'eq', '0.1000000000000000055', false],
  ] as const)('%s %s %s: %s', async (number, op, value, verdict) => {
    const filter = await compileFilter({ field: 'x', op, value, type: 'number' })
    expect(filter.test(rowOf(`{"x":${number}}`), noPause)).toBe(verdict)
  })

  test.each<[WhereFilter, string]>([
    [{ field: 'x', op: 'gt', value: 'NaN', type: 'number' }, '`x` gt: its `value` must be a finite decimal number'],
    [
      { field: 'x', op: 'gt', value: '-Infinity', type: 'number' },
      '`x` gt: its `value` must be a finite decimal number',
    ],
    [{ field: 'x', op: 'eq', value: '', type: 'number' }, '`x` eq: it needs a `value`'],
    [{ field: 'x', op: 'gt', value: 1 }, '`x` gt: it needs a `type`, number or date'],
    [
      { field: 'x', op: 'gt', value: 1, values: [2], type: 'number' },
      '`x` gt: it takes no `values`: use `value`, or the operator in',
    ],
    [{ field: 'x', op: 'contains', value: '1', type: 'number' }, '`x` contains: it takes no `type`'],
    [{ field: 'x', op: 'exists', type: 'date' }, '`x` exists: it takes no `type`'],
    [{ field: 'x', op: 'eq' }, '`x` eq: it needs a `value`'],
    [{ field: 'x', op: 'in' }, '`x` in: it needs `values`'],
    [{ field: 'x', op: 'in', values: [] }, '`x` in: it needs `values`'],
    [
      { field: 'x', op: 'eq', value: 2 ** 60 },
      '`x` eq: write 1152921504606847000 as a string, so that no digit is lost',
    ],
    [{ field: 'x', op: 'regex', value: '(a' }, '`x` regex: its regex cannot be used: missing closing ): `(a`'],
    [{ field: 'a..b', op: 'exists' }, '`a..b` exists: its field `a..b` cannot be read at character 2'],
    [
      { field: 'x', op: 'lt', value: '2024-02-30', type: 'date' },
      '`x` lt: its `value` must be an ISO date such as 2024-05-31, or a date and time such as 2024-05-31T12:00:00Z',
    ],
  ])('FT-62 an invalid typed filter is rejected: %j', async (where, problem) => {
    await expect(compileFilter(where)).rejects.toMatchObject({
      errorType: 'InvalidInput',
      message: `invalid where filter: ${problem}`,
    })
  })
})

describe('the literal prefilter', () => {
  const letters = ['a', 'b', ' ', ',', ':', '"', '\\', '/', '[', ']', '1', 'é', '😀', '\n', '\u007f', '\ufffd']
  const text = fc.string({ unit: fc.constantFrom(...letters), maxLength: 8 })
  const value = fc.letrec<{ node: unknown }>((tie) => ({
    node: fc.oneof(
      { depthSize: 'small' },
      text,
      fc.constantFrom(1, 1.5, true),
      fc.array(tie('node'), { maxLength: 3 }),
      fc.dictionary(text, tie('node'), { maxKeys: 2 }),
    ),
  })).node

  /** Writes a row as some other writer might: with other spaces, and with any character as `\u….`. */
  const writer = fc.record({
    space: fc.constantFrom(undefined, 1),
    escaped: fc.constantFrom(/[^ -~]/, /[ab1]/, /\//, /[^\s\S]/, /[\s\S]/),
  })
  function written(
    item: unknown,
    { space, escaped }: { readonly space: number | undefined; readonly escaped: RegExp },
  ): string {
    const json = JSON.stringify({ x: item }, undefined, space).replaceAll('\n', ' ')
    return json.replace(/"(?:[^"\\]|\\.)*"/g, (string) =>
      string === '"x"'
        ? string
        : string.replace(/\\.|[^"]/gs, (char) =>
            char.length === 1 && escaped.test(char) ? unicodeEscape(char) : char,
          ),
    )
  }
  const unicodeEscape = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`

  test('never hides a row that the filter lets through', async () => {
    const field = pathOf('x')
    let used = 0
    await fc.assert(
      fc.asyncProperty(
        value,
        writer,
        fc.constantFrom('eq', 'contains', 'in', 'regex'),
        fc.nat(10),
        fc.nat(10),
        async (item, how, op, from, length) => {
          const row = rowOf(written(item, how))
          const whole = textAt(row, field) ?? ''
          const part = op === 'contains' || op === 'regex' ? whole.slice(from, from + length) : whole
          fc.pre(op !== 'regex' || !/\p{Surrogate}/u.test(part))
          const pattern = part.replace(/[\\[\]{}]/g, '\\$&')
          const where: WhereFilter = {
            field: 'x',
            op,
            value: op === 'regex' ? pattern : part,
            ...(op === 'in' && { values: [part] }),
          }
          const filter = await compileFilter(where)
          expect(filter.test(row, noPause)).toBe(true)
          const needle = needleOf([filter])
          if (needle === undefined) return
          used++
          expect([...needle.texts, needle.marker].some((each) => Buffer.from(row.text).includes(each))).toBe(true)
        },
      ),
      rounds(1_000, 60_000),
    )
    expect(used).toBeGreaterThan(500)
  })

  test.each<[WhereFilter[], string[] | undefined]>([
    [[{ field: 's', op: 'eq', value: 'paid' }], ['"paid"']],
    [[{ field: 's', op: 'eq', value: 'true' }], ['true']],
    [[{ field: 's', op: 'eq', value: '-12 percent' }], ['-12 percent']],
    [[{ field: 's', op: 'contains', value: 'paid' }], ['paid']],
    [[{ field: 's', op: 'eq', value: 'http://a.example/path' }], ['a.example']],
    [[{ field: 's', op: 'in', values: ['open', 'paid'] }], ['"open"', '"paid"']],
    [[{ field: 's', op: 'regex', value: 'x+needle[0-9]' }], ['needle']],
    [[{ field: 's', op: 'ne', value: 'paid' }], undefined],
    [[{ field: 's', op: 'contains', value: '"' }], undefined],
    [
      [
        { field: 'a', op: 'exists' },
        { field: 's', op: 'eq', value: 'ab' },
        { field: 't', op: 'eq', value: 'abc' },
      ],
      ['"abc"'],
    ],
    [
      [
        { field: 'n', op: 'gt', value: '1', type: 'number' },
        { field: 's', op: 'eq', value: 'paid' },
      ],
      undefined,
    ],
    [
      [
        { field: 's', op: 'eq', value: 'paid' },
        { field: 'n', op: 'gt', value: '1', type: 'number' },
      ],
      ['"paid"'],
    ],
  ])('of %j is %j', async (where, texts) => {
    expect(needleOf(await Promise.all(where.map(compileFilter)))?.texts.map(String)).toEqual(texts)
  })
})
