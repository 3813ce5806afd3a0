import { describe, expect, test } from 'vitest'
import { compileFilter } from '#toolbox/jsonl/filter.js'
import type { WhereFilter } from '#toolbox/jsonl/filter.js'

const noPause = (): void => undefined

describe('filters', () => {
  const row = JSON.parse(
    '{"s":"paid","n":5,"f":1.0,"b":true,"z":null,"l":[1, 2],"o":{"id":1},"e":"","u":"caf\\u00e9","d":"2024-05-31","t":"2024-06-01T09:00:00Z"}',
  ) as unknown

  test.each<[WhereFilter, boolean | 'incomparable']>([
    [{ field: 's', op: 'eq', value: 'paid' }, true],
    [{ field: 's', op: 'eq', value: 'Paid' }, false],
    [{ field: 'n', op: 'eq', value: '5' }, true],
    [{ field: 'n', op: 'eq', value: 5 }, true],
    [{ field: 'n', op: 'eq', value: '5.0' }, true],
    [{ field: 'f', op: 'eq', value: '1.0' }, true],
    [{ field: 'f', op: 'eq', value: '1' }, true],
    [{ field: 'n', op: 'eq', value: '' }, false],
    [{ field: 'n', op: 'eq', value: '6' }, false],
    [{ field: 'b', op: 'eq', value: true }, true],
    [{ field: 'l', op: 'eq', value: '[1, 2]' }, true],
    [{ field: 'o', op: 'eq', value: '{"id": 1}' }, true],
    [{ field: 'e', op: 'eq', value: '' }, true],
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
    [{ field: 'z', op: 'exists' }, false],
    [{ field: 'missing', op: 'exists' }, false],
    [{ field: 'n', op: 'eq', value: '5.00', type: 'number' }, true],
    [{ field: 'n', op: 'ne', value: 5, type: 'number' }, false],
    [{ field: 's', op: 'ne', value: 5, type: 'number' }, 'incomparable'],
    [{ field: 'n', op: 'gt', value: '-5', type: 'number' }, true],
    [{ field: 'd', op: 'lte', value: '2024-05-31T01:00:00Z', type: 'date' }, true],
    [{ field: 'd', op: 'lt', value: '2024-05-31', type: 'date' }, false],
    [{ field: 's', op: 'gt', value: '2024-05-31', type: 'date' }, 'incomparable'],
    [{ field: 't', op: 'gt', value: '2024-05-31', type: 'date' }, true],
    [{ field: 't', op: 'lte', value: '2024-06-01', type: 'date' }, true],
    [{ field: 't', op: 'eq', value: '2024-06-01T09:00:00Z', type: 'date' }, true],
    [{ field: 't', op: 'gt', value: '2024-06-01T08:59:59Z', type: 'date' }, true],
    [{ field: 't', op: 'lt', value: '2024-06-01T09:00:01Z', type: 'date' }, true],
    [{ field: 'n', op: 'gt', value: '2024-05-31', type: 'date' }, 'incomparable'],
  ])('%j: %s', async (where, verdict) => {
    expect((await compileFilter(where)).test(row, noPause)).toBe(verdict)
  })

  test.each(['"5"', 'true', 'null', '[]', '{}'])(
    'FT-59 a value that is not a JSON number is not compared with numbers: %s',
    async (value) => {
      const filter = await compileFilter({ field: 'x', op: 'gt', value: '1', type: 'number' })
      expect(filter.test(JSON.parse(`{"x":${value}}`), noPause)).toBe('incomparable')
      expect(filter.test({}, noPause)).toBe('incomparable')
    },
  )

  test.each([
    ['1e400', 'gt', '1', true],
    ['-1e400', 'lt', '-1e308', true],
    ['5.1', 'gt', ' 5 ', true],
    ['0.1', 'eq', '0.10', true],
  ] as const)('%s %s %s: %s', async (number, op, value, verdict) => {
    const filter = await compileFilter({ field: 'x', op, value, type: 'number' })
    expect(filter.test(JSON.parse(`{"x":${number}}`), noPause)).toBe(verdict)
  })

  test.each<[WhereFilter, string]>([
    [{ field: 'x', op: 'gt', value: 'NaN', type: 'number' }, '`x` gt: its `value` must be a finite number'],
    [{ field: 'x', op: 'gt', value: '-Infinity', type: 'number' }, '`x` gt: its `value` must be a finite number'],
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
    [{ field: 'x', op: 'regex', value: '(a' }, '`x` regex: its regex cannot be used: missing closing ): `(a`'],
    [{ field: 'a..b', op: 'exists' }, '`a..b` exists: its field `a..b` cannot be read at character 2'],
    [
      { field: 'x', op: 'lt', value: '2024-13-01', type: 'date' },
      '`x` lt: its `value` must be an ISO date such as 2024-05-31, or a date and time such as 2024-05-31T12:00:00Z',
    ],
  ])('FT-62 an invalid typed filter is rejected: %j', async (where, problem) => {
    await expect(compileFilter(where)).rejects.toMatchObject({
      errorType: 'InvalidInput',
      message: `invalid where filter: ${problem}`,
    })
  })
})
