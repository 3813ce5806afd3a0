import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseFieldPath } from '#toolbox/jsonl/field-path.js'
import { Groups } from '#toolbox/jsonl/groups.js'
import { parseRow } from '#toolbox/jsonl/row.js'
import type { JsonObject } from '#util/json.js'
import { body, lines, searched, summary } from './support.js'
import { rounds } from '../../support/length.js'

describe('`order_by`, `limit` and `offset`', () => {
  const FILES = {
    'b.jsonl': lines('{"id":1,"n":9007199254740993}', '{"id":2,"n":9007199254740992}', '{"id":3}'),
    'a.jsonl': lines('{"id":4,"n":-1.5}', '{"id":5,"n":9007199254740994}', '{"id":6,"n":null}', '{"id":7,"n":"text"}'),
  }
  const idsOf = async (args: JsonObject): Promise<string | undefined> =>
    body(await searched(FILES, { fields: { id: 0 }, ...args }))
      .match(/(?<="id": )\d/g)
      ?.join('')

  test('the rows of all files form one list, with exact numbers, missing values last and ties ordered by file and line', async () => {
    const envelope = await searched(FILES, { order_by: [{ field: 'n' }], fields: { n: 0 }, limit: 3 })
    expect(envelope.content).toBe(
      [
        'summary:',
        '  query: (none)',
        '  scope: path=.',
        '  fields: n',
        '  order_by: n asc',
        '  rows: 3 shown, 0 skipped',
        '  rows_matched: 7',
        '',
        '  a.jsonl:1: {"n": -1.5}',
        '  b.jsonl:2: {"n": 9007199254740992}',
        '  b.jsonl:1: {"n": 9007199254740993}',
        '',
        'note: 4 more row(s) omitted',
      ].join('\n'),
    )
    expect(await idsOf({ order_by: [{ field: 'n' }] })).toBe('4215763')
    expect(await idsOf({ order_by: [{ field: 'n', direction: 'desc' }] })).toBe('7512463')
    expect(await idsOf({ order_by: [{ field: 'n', direction: 'desc', type: 'number' }] })).toBe('5124673')
  })

  test('`offset` and `limit` cut the list, also in file order', async () => {
    expect(await idsOf({ order_by: [{ field: 'n' }], offset: 2, limit: 2 })).toBe('15')
    expect(await idsOf({ limit: 5 })).toBe('45671')
    expect(await idsOf({ offset: 5 })).toBe('23')
    expect(await idsOf({ offset: 7 })).toBeUndefined()
    expect(summary(await searched(FILES, { offset: 9 }), 'rows')).toBe('0 shown, 7 skipped')
  })

  test('dates are ordered as instants, and a second field breaks ties', async () => {
    const dates = ['2024-01-01T12:00:00+02:00', '2024-01-01T11:00:00Z', '2024-01-01', 'soon', '2024-01-01T10:00:00Z']
    const files = { 'a.jsonl': lines(...dates.map((d, id) => ({ id, d }))) }
    const order_by = [
      { field: 'd', type: 'date' },
      { field: 'id', direction: 'desc' },
    ]
    expect(
      body(await searched(files, { order_by, fields: { id: 0 } }))
        .match(/(?<="id": )\d/g)
        ?.join(''),
    ).toBe('24013')
  })

  test('any window of the list equals the same window of a full sort', async () => {
    const number = fc.constantFrom(
      '0',
      '-0.0',
      '1',
      '1.0',
      '2',
      '9007199254740993',
      '9007199254740992',
      '1e400',
      '-1e400',
      '"x"',
      'null',
    )
    await fc.assert(
      fc.asyncProperty(
        fc.array(number, { maxLength: 12 }),
        fc.nat(6),
        fc.integer({ min: 1, max: 6 }),
        fc.boolean(),
        async (numbers, offset, limit, isDescending) => {
          const files = { 'a.jsonl': lines(...numbers.map((n, id) => `{"id":${id},"n":${n}}`)) }
          const order_by = [{ field: 'n', direction: isDescending ? 'desc' : 'asc' }]
          const ids = async (args: JsonObject): Promise<string[]> =>
            body(await searched(files, { order_by, fields: { id: 0 }, ...args })).match(/(?<="id": )\d+/g) ?? []
          expect(await ids({ offset, limit })).toEqual((await ids({ limit: 100 })).slice(offset, offset + limit))
        },
      ),
      rounds(40),
    )
  })
})

describe('`count_by`', () => {
  test('counts rows by value, the most frequent first, numbers with all their digits', async () => {
    const values = [
      '"open"',
      '"paid"',
      '"paid"',
      '9007199254740993',
      '9007199254740992',
      '9007199254740993',
      '5',
      '"5"',
      'null',
      '[1,2]',
      '[1, 2]',
    ]
    const rows = lines(...values.map((x) => `{"x":${x}}`), '{}', '{}', '{}')
    const envelope = await searched({ 'a.jsonl': rows, 'b.jsonl': '{"x":"paid"}\n' }, { count_by: 'x', limit: 6 })
    expect([summary(envelope, 'count_by'), summary(envelope, 'groups'), summary(envelope, 'rows_matched')]).toEqual([
      'x',
      '9 total, 6 shown',
      '15',
    ])
    expect(body(envelope)).toBe(
      [
        '  3: "paid"',
        '  3: (missing)',
        '  2: 9007199254740993',
        '  2: [1, 2]',
        '  1: "5"',
        '  1: "open"',
        '',
        'note: 3 more group(s) omitted',
      ].join('\n'),
    )
    expect(
      body(await searched({ 'a.jsonl': rows }, { count_by: 'x', offset: 7, where: [{ field: 'x', op: 'exists' }] })),
    ).toBe('')
  })

  test('values are kept apart up to a limit, and every row is counted', () => {
    const parsed = parseFieldPath('x')
    if (!parsed.ok) throw new Error(parsed.problem)
    const groups = new Groups(parsed.path, { offset: 0, limit: 25 })
    const file = groups.openFile()
    const big = 'y'.repeat(1_000_000)
    for (let index = 0; index < 40; index++) file.add(parseRow(JSON.stringify({ x: `${index}${big}` }))!, index)
    file.add(parseRow(JSON.stringify({ x: `0${big}` }))!, 41)
    expect([groups.sorted()[0]?.rows, groups.sorted().length + groups.others]).toEqual([2, 40])
    expect(groups.others).toBeGreaterThan(5)
  })
})
