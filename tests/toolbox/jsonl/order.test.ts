import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { RowCounts } from '#toolbox/jsonl/results.js'
import type { JsonObject } from '#util/json.js'
import { body, lines, pathOf, searched, summary } from './support.js'
import { rounds } from '../../support/length.js'

describe('`order_by`, `limit` and `offset`', () => {
  const FILES = {
    'b.jsonl': lines('{"id":1,"n":20.5}', '{"id":2,"n":3}', '{"id":3}'),
    'a.jsonl': lines('{"id":4,"n":-1.5}', '{"id":5,"n":100}', '{"id":6,"n":null}', '{"id":7,"n":"text"}'),
  }
  const idsOf = async (args: JsonObject): Promise<string | undefined> =>
    body(await searched(FILES, { fields: { id: 0 }, ...args }))
      .match(/(?<="id": )\d/g)
      ?.join('')

  test('the rows of all files form one list, with missing values last and ties ordered by file and line', async () => {
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
        '  b.jsonl:2: {"n": 3}',
        '  b.jsonl:1: {"n": 20.5}',
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

  test('dates are ordered as they are written, and a second field breaks ties', async () => {
    const dates = ['2024-01-02T12:00:00Z', '2024-01-01T11:00:00Z', '2024-01-01', 'soon', '2024-01-01T11:00:00Z']
    const files = { 'a.jsonl': lines(...dates.map((d, id) => ({ id, d }))) }
    const order_by = [
      { field: 'd', type: 'date' },
      { field: 'id', direction: 'desc' },
    ]
    expect(
      body(await searched(files, { order_by, fields: { id: 0 } }))
        .match(/(?<="id": )\d/g)
        ?.join(''),
    ).toBe('24103')
  })

  test('any window of the list equals the same window of a full sort', async () => {
    const number = fc.constantFrom('0', '-0.0', '1', '1.0', '2', '20.5', '3', '1e400', '-1e400', '"x"', 'null')
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
  test('counts rows by value, the most frequent first', async () => {
    const values = ['"open"', '"paid"', '"paid"', '7.5', '8', '7.50', '5', '"5"', 'null', '[1,2]', '[1, 2]']
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
        '  2: 7.5',
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
    const counts = new RowCounts(pathOf('x'), { offset: 0, limit: 100 })
    const big = 'y'.repeat(1_000_000)
    const add = (index: number): void =>
      counts.add({ path: 'a.jsonl', shown: 'a.jsonl', line: 1, text: '', value: { x: `${index}${big}` } })
    for (let index = 0; index < 40; index++) add(index)
    add(0)
    const { count, blocks } = counts.body()
    const [, groups] = /^groups: (\d+) total/.exec(count) ?? []
    const [, others] = /^note: (\d+) row\(s\) have other values/.exec(blocks.at(-1) ?? '') ?? []
    expect(blocks[0]).toMatch(/^ {2}2: "0y/)
    expect(Number(groups) + Number(others)).toBe(40)
    expect(Number(others)).toBeGreaterThan(5)
  })
})
