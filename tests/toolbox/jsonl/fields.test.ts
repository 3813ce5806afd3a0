import { expect, test } from 'vitest'
import type { JsonObject } from '#util/json.js'
import { body, lines, searched, summary } from './support.js'

const text = ['Intro', 'The Invoice is late', 'x', 'see invoice 7', 'y', 'z', 'w', 'INVOICE again', 'end'].join('\n')
const rows = lines({ id: 1, text, empty: null, n: 5 }, { id: 2, text: 'nothing here', empty: 'one\r\ntwo' })
const under = async (field_searches: JsonObject[], rest: JsonObject = {}): Promise<string> =>
  body(await searched({ 'a.jsonl': rows }, { field_searches, where: [{ field: 'id', op: 'eq', value: 1 }], ...rest }))

test('FT-41 only matching lines of a field are shown, under the projected row', async () => {
  expect(await under([{ field: 'text', query: 'invoice' }], { fields: { id: 0 } })).toBe(
    [
      'a.jsonl',
      '  1: {"id": 1}',
      '    text matches:',
      '      2: The Invoice is late',
      '      4: see invoice 7',
      '      8: INVOICE again',
    ].join('\n'),
  )
})

test('FT-42 FT-50 without `fields` the row is an empty object, and a search without a match is reported', async () => {
  expect(await under([{ field: 'text', query: 'absent' }])).toBe('a.jsonl\n  1: {}\n    text matches: none')
})

test('FT-43 `query` filters rows even if fields are searched', async () => {
  const envelope = await searched(
    { 'a.jsonl': rows },
    { query: 'nothing', field_searches: [{ field: 'text', query: 'here' }] },
  )
  expect(body(envelope)).toBe('a.jsonl\n  2: {}\n    text matches:\n      1: nothing here')
  expect(summary(envelope, 'field_searches')).toBe("text 'here'")
})

test('FT-44 with `fields` a search without a match adds no line', async () => {
  expect(await under([{ field: 'text', query: 'absent' }], { fields: { id: 0 } })).toBe('a.jsonl\n  1: {"id": 1}')
})

test('FT-45 FT-46 several searches come in their order, and those of one field are numbered', async () => {
  const searches = [
    { field: 'text', query: 'end' },
    { field: 'text', query: 'intro' },
    { field: 'text', query: 'end' },
  ]
  expect(await under(searches)).toBe(
    [
      'a.jsonl',
      '  1: {}',
      "    text matches #1 (query='end'):",
      '      9: end',
      "    text matches #2 (query='intro'):",
      '      1: Intro',
      "    text matches #3 (query='end'):",
      '      9: end',
    ].join('\n'),
  )
})

test('FT-47 FT-48 overlapping context merges, no line is repeated, and a visible match is not counted as omitted', async () => {
  const search = { field: 'text', query: 'invoice', context_lines: 2, max_matches: 1 }
  expect(await under([search])).toBe(
    [
      'a.jsonl',
      '  1: {}',
      '    text matches:',
      '      1: Intro',
      '      2: The Invoice is late',
      '      3: x',
      '      4: see invoice 7',
      '      ... 1 more match(es)',
    ].join('\n'),
  )
  const all = await under([{ ...search, max_matches: 3 }])
  expect(all.match(/^ {6}\d/gm)).toHaveLength(9)
})

test('FT-49 FT-51 FT-52 lines are cut, and case sensitivity and regular expressions follow the arguments', async () => {
  expect(await under([{ field: 'text', query: 'again', max_line_chars: 3 }])).toContain('      8: INV…')
  const numbers = async (search: JsonObject): Promise<unknown> =>
    (await under([{ field: 'text', ...search }])).match(/(?<=^ {6})\d/gm)
  expect(await numbers({ query: 'INVOICE', case_sensitive: true })).toEqual(['8'])
  expect(await numbers({ query: '^(see )?invoice', regex: true })).toEqual(['4', '8'])
  expect(await numbers({ query: '^invoice|Intro$', regex: true, case_sensitive: true })).toEqual(['1'])
  expect(await numbers({ query: 'in.oice' })).toBeNull()
})

test('FT-54 FT-55 missing, null and non-string fields are reported unless another search matches', async () => {
  const misses = [
    { field: 'absent', query: 'x' },
    { field: 'empty', query: 'x' },
    { field: 'n', query: '5' },
  ]
  expect(await under(misses)).toBe(
    [
      'a.jsonl',
      '  1: {}',
      '    absent matches: none (missing field)',
      '    empty matches: none (null field)',
      '    n matches: none (non-string field)',
    ].join('\n'),
  )
  expect(await under([...misses, { field: 'text', query: 'intro' }])).toBe(
    'a.jsonl\n  1: {}\n    text matches:\n      1: Intro',
  )
})

test('FT-56 FT-57 context stays within the field, and works together with range filters and their warnings', async () => {
  const envelope = await searched(
    { 'a.jsonl': rows + lines({ id: 'x' }) },
    {
      where: [{ field: 'id', op: 'gt', value: 1, type: 'number' }],
      field_searches: [
        { field: 'text', query: 'nothing', context_lines: 5 },
        { field: 'empty', query: 'two', context_lines: 1 },
      ],
    },
  )
  expect(envelope.metadata['compare_warnings']).toBe(1)
  expect(body(envelope)).toBe(
    'a.jsonl\n  2: {}\n    text matches:\n      1: nothing here\n    empty matches:\n      1: one\n      2: two',
  )
})

test.each([
  [{ field: 'text', query: '(a', regex: true }, 'invalid field_search regex: missing closing ): `(a`'],
  [{ field: 'a..b', query: 'a' }, 'invalid field path: `a..b` cannot be read at character 2'],
])('FT-53 an invalid regex or path is rejected, and the error names the problem: %j', async (search, content) => {
  expect(await searched({ 'a.jsonl': rows }, { field_searches: [search] })).toMatchObject({ ok: false, content })
})
