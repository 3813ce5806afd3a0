import { chmod, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { jsonlSearch } from '#toolbox/jsonl/jsonl-search.js'
import type { JsonObject } from '#util/json.js'
import { body, canLoseRights, lines, searched, summary, withoutRights } from './support.js'
import { call, folderWith, textOf } from '../support.js'

const ORDERS = lines(
  { id: 1, status: 'open', user: { name: 'Ada', tags: ['vip', 'eu'] }, 'total price': 10 },
  { id: 2, status: 'paid', user: { name: 'Bob', tags: [] }, 'total price': 20.5 },
  { id: 3, status: null, user: { name: 'Cy' } },
  { id: 4, status: 'paid', user: { name: 'Dee', tags: ['us'] }, 'total price': 30 },
)

describe('rows', () => {
  test('FT-32 rows are filtered by nested path, index and quoted key, and their fields are projected and cut', async () => {
    const envelope = await searched(
      { 'orders.jsonl': ORDERS },
      {
        where: [
          { field: 'user.tags[-1]', op: 'exists' },
          { field: '["total price"]', op: 'gte', value: 10, type: 'number' },
        ],
        fields: { id: 0, 'user.name': 2, 'user.tags': 4, nothing: 0 },
      },
    )
    expect(envelope).toEqual({
      ok: true,
      content: [
        'summary:',
        '  query: (none)',
        '  scope: path=.',
        '  where: user.tags[-1] exists; ["total price"] gte 10 (number)',
        '  fields: id, user.name (2), user.tags (4), nothing',
        '  files: 1 total, 1 shown',
        '  rows_matched: 2',
        '',
        'orders.jsonl',
        '  1: {"id": 1, "user.name": "Ad…", "user.tags": "[\\"vi…", "nothing": null}',
        '  4: {"id": 4, "user.name": "De…", "user.tags": "[\\"us…", "nothing": null}',
      ].join('\n'),
      metadata: { returncode: 0 },
    })
  })

  test('without `fields` the whole row is shown as it stands in the file, where `edit` finds it', async () => {
    const envelope = await searched({ 'a.jsonl': '{"a" : [1,2.0,{"b":"\\u00e9"}],"n":12.50}\n' }, {})
    expect(body(envelope)).toBe('a.jsonl\n  1: {"a" : [1,2.0,{"b":"\\u00e9"}],"n":12.50}')
  })

  test('FT-33 `query` selects lines before they are parsed', async () => {
    const envelope = await searched(
      { 'a.jsonl': lines({ id: 1, s: 'x' }, '{"broken": "x"', { id: 2, s: 'y' }, '', '{"id":3,"s":"x","broken":') },
      { query: '"s":"x"', fields: { id: 0 } },
    )
    expect([body(envelope), summary(envelope, 'json_parse_errors'), summary(envelope, 'query')]).toEqual([
      'a.jsonl\n  1: {"id": 1}',
      '1',
      '"s":"x"',
    ])
  })

  test.each<[JsonObject, number[]]>([
    [{ field: 'status', op: 'ne', value: 'open' }, [2, 4]],
    [{ field: 'status', op: 'in', values: ['open', 'late'] }, [1]],
    [{ field: 'status', op: 'exists' }, [1, 2, 4]],
    [{ field: 'user.tags', op: 'exists' }, [1, 2, 4]],
    [{ field: 'user.tags', op: 'contains', value: 'eu' }, [1]],
    [{ field: 'user.name', op: 'regex', value: '^[A-B]' }, [1, 2]],
  ])('FT-34 filters treat null and missing fields consistently: %j, %j', async (where, ids) => {
    const envelope = await searched({ 'orders.jsonl': ORDERS }, { where: [where], fields: { id: 0 } })
    expect(body(envelope)).toBe(['orders.jsonl', ...ids.map((id) => `  ${id}: {"id": ${id}}`)].join('\n'))
  })

  test('FT-35 FT-36 a folder or a glob yields JSONL files only', async () => {
    const files = {
      'a.jsonl': lines({ id: 1 }),
      'logs/b.jsonl': lines({ id: 2 }),
      'logs/deep/C.JSONL': lines({ id: 3 }),
      'logs/notes.txt': 'not json\n',
      'logs/d.json': 'not json\n',
    }
    const filesOf = async (path: string): Promise<unknown> => {
      const envelope = await searched(files, { path })
      return [body(envelope).match(/^[^ \n]+$/gm), summary(envelope, 'json_parse_errors')]
    }
    expect(await filesOf('logs')).toEqual([['logs/b.jsonl', 'logs/deep/C.JSONL'], undefined])
    expect(await filesOf('**/*')).toEqual([['a.jsonl', 'logs/b.jsonl', 'logs/deep/C.JSONL'], undefined])
    expect(await filesOf('*.jsonl')).toEqual([['a.jsonl'], undefined])
    expect(await filesOf('logs/{b,x}.jsonl')).toEqual([['logs/b.jsonl'], undefined])
    expect(await filesOf('logs/notes.txt')).toEqual([null, undefined])
    expect(await filesOf('missing.jsonl')).toEqual([null, undefined])
  })

  test('hidden and ignored files are skipped, with and without a query', async () => {
    const files = {
      '.gitignore': 'old/\n',
      'old/a.jsonl': lines({ id: 1 }),
      '.hidden/a.jsonl': lines({ id: 2 }),
      'new/a.jsonl': lines({ id: 3 }),
    }
    for (const args of [{}, { query: 'id' }, { path: '**/*.jsonl' }, { path: '**/*.jsonl', query: 'id' }]) {
      expect(body(await searched(files, args))).toBe('new/a.jsonl\n  1: {"id":3}')
    }
  })

  test('FT-37 FT-24 an invalid query is a failure with return code 2', async () => {
    expect(await searched({ 'a.jsonl': '{}\n' }, { query: '(' })).toEqual({
      ok: false,
      content: 'invalid query: missing closing ): `(`',
      metadata: { error_type: 'InvalidInput', retry: true, returncode: 2 },
    })
  })

  test('FT-38 FT-74 display limits do not change the number of matching rows, and omitted rows are reported', async () => {
    const rows = Array.from({ length: 30 }, (_, id) => ({ id }))
    const files = Object.fromEntries(
      Array.from({ length: 102 }, (_, index) => [`${index + 100}.jsonl`, lines(...rows)]),
    )
    const envelope = await searched(files, { fields: { id: 0 } }, { maxToolChars: 200_000 })
    expect([summary(envelope, 'files'), summary(envelope, 'rows_matched')]).toEqual(['102 total, 100 shown', '3060'])
    expect(body(envelope)).toContain('199.jsonl\n  1: {"id": 0}')
    expect(body(envelope)).toContain('  25: {"id": 24}\n  ... 5 more row(s)\n\n')
    expect(body(envelope)).toMatch(/note: 2 more file\(s\) omitted$/)
    const fewer = await searched({ 'a.jsonl': lines(...rows) }, { max_matches_per_file: 1, fields: { id: 0 } })
    expect(body(fewer)).toBe('a.jsonl\n  1: {"id": 0}\n  ... 29 more row(s)')
  })

  test('FT-75 the default limits show 11 files with 4 rows each without omission', async () => {
    const files = Object.fromEntries(
      Array.from({ length: 11 }, (_, index) => [`${index + 10}.jsonl`, lines({}, {}, {}, {})]),
    )
    const envelope = await searched(files, {})
    expect([summary(envelope, 'files'), summary(envelope, 'rows_matched')]).toEqual(['11 total, 11 shown', '44'])
    expect(envelope.content).not.toContain('more')
  })

  test('FT-19 FT-20 FT-73 only readable files are searched, no path leaves the root, and missing read paths give an empty result', async () => {
    const root = await folderWith({ 'a.jsonl': lines({ id: 1 }), 'b/b.jsonl': lines({ id: 2 }) })
    await writeFile(join(dirname(root), 'out.jsonl'), lines({ id: 3 }))
    await symlink(join(dirname(root), 'out.jsonl'), join(root, 'link.jsonl'))
    expect(body(await call(jsonlSearch({ root, readPaths: ['b'] }), {}))).toBe('b/b.jsonl\n  1: {"id":2}')
    for (const path of ['../out.jsonl', '../*.jsonl', 'link.jsonl', 'x/../../*.jsonl']) {
      const envelope = await call(jsonlSearch({ root }), { path })
      expect(envelope).toMatchObject({ ok: false, metadata: { error_type: 'PathValidationError' } })
    }
    const none = await call(jsonlSearch({ root, readPaths: ['missing'] }), {})
    expect(none).toMatchObject({ ok: true, metadata: { returncode: 1 } })
    expect(summary(none, 'rows_matched')).toBe('0')
  })

  test.skipIf(!canLoseRights)(
    'FT-40 FT-66 a file that cannot be read leaves a warning without any content',
    async () => {
      const root = await folderWith({
        'a.jsonl': lines({ id: 'secret' }),
        'b.jsonl': lines({ id: 1, n: 'x' }, { id: 2, n: 3 }),
      })
      await chmod(join(root, 'a.jsonl'), 0)
      const where = [{ field: 'n', op: 'gt', value: 1, type: 'number' }]
      const tool = jsonlSearch({ root })
      const envelope = await withoutRights(root, () => call(tool, { where, fields: { id: 0 } }))
      expect(envelope.metadata).toEqual({
        returncode: 2,
        warning: 'the search is not complete',
        warning_excerpt: 'permission denied (EACCES): a.jsonl',
        compare_warnings: 1,
      })
      expect(body(envelope)).toBe('b.jsonl\n  2: {"id": 2}')
      const alone = await withoutRights(root, () => call(tool, { path: 'a.jsonl' }))
      expect(alone).toMatchObject({ ok: false, metadata: { error_type: 'SearchFailed', returncode: 2 } })
    },
  )

  test('FT-67 a long result is saved to a file', async () => {
    const root = await folderWith({ 'a.jsonl': lines({ text: 'x'.repeat(2_000) }) })
    const { content, metadata } = await call(jsonlSearch({ root }), { max_chars: 500 })
    expect(metadata).toMatchObject({ truncated: true, returncode: 0 })
    expect(content).toContain('Call `read` with path')
    expect(await textOf(root, metadata['saved_to_display'] as string)).toContain('x'.repeat(2_000))
  })
})

describe('typed comparisons', () => {
  const NUMBERS = lines(
    ...['1', '1.0', '"1"', 'true', '"x"', 'null', '{}', '[1]', '2', '-3'].map((x, index) => `{"id":${index},"x":${x}}`),
    '{"id":10}',
  )

  test('FT-58 typed equality matches JSON numbers only, and `ne` excludes values that cannot be compared', async () => {
    const where = (op: string): JsonObject => ({
      where: [{ field: 'x', op, value: '1', type: 'number' }],
      fields: { id: 0 },
    })
    const equal = await searched({ 'a.jsonl': NUMBERS }, where('eq'))
    expect([body(equal), equal.metadata['compare_warnings']]).toEqual(['a.jsonl\n  1: {"id": 0}\n  2: {"id": 1}', 7])
    expect(summary(equal, 'compare_warnings')).toBe('7 row(s) with a value that could not be compared')
    const unequal = await searched({ 'a.jsonl': NUMBERS }, where('ne'))
    expect(body(unequal)).toBe('a.jsonl\n  9: {"id": 8}\n  10: {"id": 9}')
  })

  test('FT-60 ranges are exact at their ends, and a result without warnings has no warning keys', async () => {
    const rows = lines({ id: 1, x: -5 }, { id: 2, x: 0 }, { id: 3, x: 5 })
    const ids = async (op: string, value: number): Promise<unknown> => {
      const envelope = await searched(
        { 'a.jsonl': rows },
        { where: [{ field: 'x', op, value, type: 'number' }], fields: { id: 0 } },
      )
      expect(envelope.metadata).not.toHaveProperty('compare_warnings')
      expect(summary(envelope, 'compare_warnings')).toBeUndefined()
      return body(envelope)
        .match(/(?<=id": )\d/g)
        ?.join('')
    }
    expect([await ids('gt', 0), await ids('gte', 0), await ids('lt', -5), await ids('lte', -5)]).toEqual([
      '3',
      '23',
      undefined,
      '1',
    ])
  })

  test('FT-61 numbers have the precision of JavaScript, and lines with `NaN` are not JSON', async () => {
    const envelope = await searched(
      { 'a.jsonl': lines('{"x":9007199254740992}', '{"x":9007199254740993}', '{"x":NaN}') },
      { where: [{ field: 'x', op: 'gte', value: '9007199254740993', type: 'number' }] },
    )
    expect(body(envelope)).toBe('a.jsonl\n  1: {"x":9007199254740992}\n  2: {"x":9007199254740993}')
    expect(summary(envelope, 'json_parse_errors')).toBe('1')
  })

  test('FT-62 invalid filters, fields and searches fail before any file is read', async () => {
    const problem = async (args: JsonObject): Promise<string> => {
      const { ok, content, metadata } = await searched({}, args)
      expect({ ok, metadata }).toEqual({ ok: false, metadata: { error_type: 'InvalidInput', retry: true } })
      return content
    }
    expect(await problem({ where: [{ field: 'x', op: 'gt', value: 'NaN', type: 'number' }] })).toMatch(
      /^invalid where filter: /,
    )
    expect(await problem({ where: [{ field: 'x', op: 'regex', value: '(' }] })).toMatch(/^invalid where filter: /)
    expect(await problem({ fields: { 'a b': 0 } })).toMatch(/^invalid field path: /)
    expect(await problem({ field_searches: [{ field: 'a b', query: 'x' }] })).toMatch(/^invalid field path: /)
    expect(await problem({ field_searches: [{ field: 'a', query: '(', regex: true }] })).toMatch(
      /^invalid field_search regex: /,
    )
    expect(await problem({ count_by: 'a b' })).toMatch(/^invalid field path: /)
    expect(await problem({ count_by: 'a', order_by: [{ field: 'b' }] })).toMatch(/^`count_by` shows counts/)
  })

  test('FT-63 FT-64 dates and times are compared as written, and a date-time without a zone only with its like', async () => {
    const rows = lines(
      ...['2024-05-31', '2024-05-31T23:59:59-11:00', '2024-06-01T00:00:00', '2024-06-01T09:00:00Z', 'soon', 5].map(
        (d, id) => ({ id, d }),
      ),
    )
    const ids = async (op: string, value: string): Promise<unknown> => {
      const envelope = await searched(
        { 'a.jsonl': rows },
        { where: [{ field: 'd', op, value, type: 'date' }], fields: { id: 0 } },
      )
      return [
        body(envelope)
          .match(/(?<=id": )\d/g)
          ?.join(''),
        envelope.metadata['compare_warnings'],
      ]
    }
    expect(await ids('lte', '2024-05-31')).toEqual(['01', 2])
    expect(await ids('lt', '2024-06-01')).toEqual(['01', 2])
    expect(await ids('gt', '2024-05-31')).toEqual(['23', 2])
    expect(await ids('gte', '2024-06-01T09:00:00Z')).toEqual(['3', 3])
    expect(await ids('lt', '2024-06-01T00:00:01')).toEqual(['02', 4])
  })

  test('FT-65 a row is warned about once, and not if an earlier filter has rejected it', async () => {
    const rows = lines({ s: 'a', x: 'no', y: 'no' }, { s: 'b', x: 'no', y: 1 }, { s: 'a', x: 2, y: 'no' })
    const number = (field: string): JsonObject => ({ field, op: 'gt', value: 1, type: 'number' })
    const warnings = async (where: JsonObject[]): Promise<unknown> =>
      (await searched({ 'a.jsonl': rows }, { where })).metadata['compare_warnings']
    expect(await warnings([number('x'), number('y')])).toBe(3)
    expect(await warnings([{ field: 's', op: 'eq', value: 'a' }, number('x'), number('y')])).toBe(2)
    expect(await warnings([number('x'), { field: 's', op: 'eq', value: 'a' }])).toBe(2)
  })
})

test('FT-21 the schema offers range operators, comparison types and field searches', () => {
  const text = JSON.stringify(jsonlSearch().parameters)
  for (const word of ['gte', 'lte', '"number","date"', 'field_searches', 'context_lines', 'max_matches'])
    expect(text).toContain(word)
})
