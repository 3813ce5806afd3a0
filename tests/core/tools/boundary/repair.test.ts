import { describe, expect, test } from 'vitest'
import { callTool } from '#harness/call-tool.js'
import { defineTool } from '#core/tools/define-tool.js'
import type { ToolSpec } from '#core/tools/tool-spec.js'
import type { JsonObject, JsonSchema } from '#util/json.js'
import { check, raw, tools } from '../support/edit-tools.js'

/** The line about a value of the wrong kind, from each validator. */
function wrongKind(place: string, expected: string, shown: string): Record<string, string> {
  const received = shown === 'number' ? 'number' : 'string'
  const [inSchema = '', typed = ''] = expected.split('|')
  return {
    'a JSON Schema': `- ${place}: Instance type "${received}" is invalid. Expected "${inSchema}". (${shown})`,
    'a typed schema': `- ${place}: Invalid input: expected ${typed}, received ${received} (${shown})`,
  }
}

function always(line: string): Record<string, string> {
  return { 'a JSON Schema': line, 'a typed schema': line }
}

describe.each(tools)('repairs by %s', (validator, spec) => {
  test.each<[string, unknown, JsonObject, string[]]>([
    ['filePath', { filePath: 'a' }, { path: 'a' }, ['`filePath` was read as `path`']],
    ['file_path', { file_path: 'a' }, { path: 'a' }, ['`file_path` was read as `path`']],
    [
      'oldString, at any depth',
      { edits: [{ oldString: 'a' }] },
      { edits: [{ old_string: 'a' }] },
      ['`edits.0.oldString` was read as `old_string`'],
    ],
    [
      'newString',
      { edits: [{ newString: 'a' }] },
      { edits: [{ new_string: 'a' }] },
      ['`edits.0.newString` was read as `new_string`'],
    ],
    [
      'replaceAll',
      { edits: [{ replaceAll: true }] },
      { edits: [{ replace_all: true }] },
      ['`edits.0.replaceAll` was read as `replace_all`'],
    ],
    ['cmd', { cmd: 'ls' }, { command: 'ls' }, ['`cmd` was read as `command`']],
    [
      'kebab case',
      { edits: [{ 'expected-replacements': 2 }] },
      { edits: [{ expected_replacements: 2 }] },
      ['`edits.0.expected-replacements` was read as `expected_replacements`'],
    ],
    [
      "the tool's own alias",
      { file: 'a', edits: [{ all: true }] },
      { path: 'a', edits: [{ replace_all: true }] },
      ['`edits.0.all` was read as `replace_all`', '`file` was read as `path`'],
    ],
    ['boolean text', { flag: ' TRUE ' }, { flag: true }, ['the text in `flag` was read as true or false']],
    [
      'boolean text where null may be',
      { edits: [{ replace_all: 'false' }] },
      { edits: [{ replace_all: false }] },
      ['the text in `edits.0.replace_all` was read as true or false'],
    ],
    ['integer text', { limit: '-12' }, { limit: -12 }, ['the text in `limit` was read as a whole number']],
    [
      'integer text with a plus',
      { limit: '+012345678901234' },
      { limit: 12_345_678_901_234 },
      ['the text in `limit` was read as a whole number'],
    ],
    ['integer text of minus zero', { limit: '-0' }, { limit: 0 }, ['the text in `limit` was read as a whole number']],
    [
      'integer text among alternatives',
      { edits: [{ expected_replacements: '3' }] },
      { edits: [{ expected_replacements: 3 }] },
      ['the text in `edits.0.expected_replacements` was read as a whole number'],
    ],
    [
      'a link',
      { path: '[src/a.ts](http://src/a.ts/)' },
      { path: 'src/a.ts' },
      ['the link in `path` was read as the path in it'],
    ],
    [
      'a link to a file',
      { path: '[/tmp/a](file:///tmp/a)' },
      { path: '/tmp/a' },
      ['the link in `path` was read as the path in it'],
    ],
    [
      'a link to a folder',
      { path: '[src/](https://src/)' },
      { path: 'src/' },
      ['the link in `path` was read as the path in it'],
    ],
    [
      'a link with brackets in it',
      { path: '[app/(a)/[id].ts](app/(a)/[id].ts)' },
      { path: 'app/(a)/[id].ts' },
      ['the link in `path` was read as the path in it'],
    ],
    [
      'a link in angle brackets',
      { path: '<a b.ts>' },
      { path: 'a b.ts' },
      ['the link in `path` was read as the path in it'],
    ],
    [
      'links in a list',
      { paths: ['a', '<b>'] },
      { paths: ['a', 'b'] },
      ['the link in `paths.1` was read as the path in it'],
    ],
    [
      'a recursive schema',
      { child: { child: { isOpen: 'true' } } },
      { child: { child: { is_open: true } } },
      ['`child.child.isOpen` was read as `is_open`', 'the text in `child.child.isOpen` was read as true or false'],
    ],
    [
      'double encoding',
      JSON.stringify('{"limit":"1"}'),
      { limit: 1 },
      ['a JSON object sent as a string was read as the object', 'the text in `limit` was read as a whole number'],
    ],
    ['nothing sent', '', {}, ['nothing was sent, which was read as no fields']],
    ['nothing but space sent', ' \n', {}, ['nothing was sent, which was read as no fields']],
    [
      'an alias that says the same',
      { path: 'a', filePath: '<a>' },
      { path: 'a' },
      ['`filePath` was dropped: it says the same as `path`', 'the link in `filePath` was read as the path in it'],
    ],
    [
      'two aliases that say the same',
      { file: 'a', filePath: 'a' },
      { path: 'a' },
      ['`filePath` was dropped: it says the same as `path`', '`file` was read as `path`'],
    ],
  ])('144 a common mistake with one possible fix is repaired: %s', async (_name, sent, value, repairs) => {
    expect(await check(spec, sent)).toEqual({ ok: true, value, text: JSON.stringify(value), repairs })
  })

  test.each<[string, unknown]>([
    ['a text that may be a text', { either: 'true' }],
    ['a text in a field of content', { content: ' <a> ' }],
    ['a link in a field that holds no path', { content: '[a](a)' }],
    ['a link whose label says something else', { path: '[the file](a.ts)' }],
    ['a link that is not the whole value', { path: 'see <a>' }],
    ['a link within a link', { path: '[<a>](<a>)' }],
    ['a field that the schema describes though it does not name it', { labels: { filePath: 'a', cmd: 'b' } }],
    ['null', { edits: [{ replace_all: null }] }],
  ])('144 arguments without a clear mistake are left as they are: %s', async (_name, sent) => {
    expect(await check(spec, sent)).toEqual({ ok: true, value: sent, text: JSON.stringify(sent), repairs: [] })
  })

  test.each<[string, unknown, Record<string, string>]>([
    ['"1" to boolean', { flag: '1' }, wrongKind('flag', 'boolean|boolean', '"1"')],
    ['"yes" to boolean', { flag: 'yes' }, wrongKind('flag', 'boolean|boolean', '"yes"')],
    ['a number to a string', { content: 5 }, wrongKind('content', 'string|string', 'number')],
    ['a text to a number that is not whole', { ratio: '5' }, wrongKind('ratio', 'number|number', '"5"')],
    ['rounding', { limit: 1.5 }, wrongKind('limit', 'integer|int', 'number')],
    ['rounding of a text', { limit: '1.0' }, wrongKind('limit', 'integer|number', '"1.0"')],
    ['a text of 16 digits', { limit: '1234567890123456' }, wrongKind('limit', 'integer|number', '"1234567890123456"')],
    ['a text with space around a number', { limit: ' 1' }, wrongKind('limit', 'integer|number', '" 1"')],
    [
      'an alias with another value than its target',
      { path: 'a', filePath: 'b' },
      always('- filePath: means the same as `path`, which was sent with another value; send `path` only ("b")'),
    ],
    [
      'two aliases with different values',
      { file: 'a', filePath: 'b' },
      always('- filePath: means the same as `path`, which was sent with another value; send `path` only ("b")'),
    ],
    [
      '145 an alias next to an unknown field',
      { filePath: 'a', bogus: 1 },
      {
        'a JSON Schema':
          '- <root>: Property "filePath" does not match additional properties schema.\n- <root>: Property "bogus" does not match additional properties schema.',
        'a typed schema': '- filePath: unknown field ("a")\n- bogus: unknown field (number)',
      },
    ],
    [
      'an alias beside another problem',
      { edits: [{ oldString: 'a', new_string: 5 }] },
      wrongKind('edits.0.new_string', 'string|string', 'number'),
    ],
    ['a text beside another problem', { flag: 'true', limit: 'x' }, wrongKind('flag', 'boolean|boolean', '"true"')],
    [
      'two levels of encoding',
      JSON.stringify(JSON.stringify('{"limit":1}')),
      always('- <root>: arguments must be a JSON object'),
    ],
    [
      'an alias with a value where its target is null',
      { edits: [{ all: true, replace_all: null }] },
      always('- edits.0.all: means the same as `replace_all`, which was sent with another value'),
    ],
    [
      'double encoding beside a problem',
      JSON.stringify('{"limit":"x"}'),
      always('- <root>: arguments must be a JSON object ("{\\"limit\\":\\"x\\"}")'),
    ],
  ])('144 arguments that cannot be repaired safely are rejected as received: %s', async (_name, sent, lines) => {
    const checked = await check(spec, sent)
    if (checked.ok) throw new Error('Expected a refusal.')

    expect(checked.outcome.content).toContain(lines[validator])
    expect(checked.outcome.retry).toBe(true)
    if (typeof sent !== 'string') expect(checked.text).toBe(JSON.stringify(sent))
  })
})

describe('the intended spelling', () => {
  const tool = (properties: JsonSchema, more: Partial<ToolSpec> = {}): ToolSpec =>
    defineTool({
      name: 'x',
      description: '',
      parameters: { type: 'object', properties, ...more.parameters },
      ...(more.aliases && { aliases: more.aliases }),
      handler: (args) => args,
    })

  const list: ToolSpec = defineTool({
    name: 'x',
    description: '',
    parameters: {
      type: 'object',
      properties: {
        edits: {
          type: 'array',
          items: { type: 'object', properties: { path: {}, old_string: {} }, additionalProperties: false },
        },
      },
      additionalProperties: false,
    },
    handler: (args) => args,
  })

  test.each<[string, JsonObject, JsonObject | null]>([
    ['one item in place of the list', { path: 'a', old_string: 'b' }, { edits: [{ path: 'a', old_string: 'b' }] }],
    ['one item with other spellings', { filePath: 'a', oldString: 'b' }, { edits: [{ path: 'a', old_string: 'b' }] }],
    ['a field that no item has', { path: 'a', other: 'b' }, null],
    ['an item beside the list', { path: 'a', edits: [] }, null],
    ['nothing', {}, {}],
  ])('a tool whose only field is a list: %s', async (_name, sent, expected) => {
    const checked = await check(list, sent)
    expect(checked.ok ? checked.value : null).toEqual(expected)
  })

  test.each<[string, ToolSpec, JsonObject, JsonObject]>([
    ['a declared field is never an alias', tool({ path: {}, filePath: {} }), { filePath: 'a' }, { filePath: 'a' }],
    ['the nearest declared name wins', tool({ path: {}, file_path: {} }), { filePath: 'a' }, { file_path: 'a' }],
    [
      "the tool's alias wins over it",
      tool({ path: {}, file_path: {} }, { aliases: { filePath: 'path' } }),
      { filePath: 'a' },
      { path: 'a' },
    ],
    [
      'a field is not filled by an alias of another place',
      tool({ inner: { properties: { path: {} } } }),
      { filePath: 'a' },
      { filePath: 'a' },
    ],
    ['a name in snake case with digits', tool({ max_2d_size: {} }), { max2dSize: 1 }, { max_2d_size: 1 }],
    ['a camel case field has no other spelling', tool({ maxSize: {} }), { max_size: 1 }, { max_size: 1 }],
    [
      'names of prototypes are names',
      tool({ path: {} }),
      JSON.parse('{"__proto__":1,"constructor":2}') as JsonObject,
      JSON.parse('{"__proto__":1,"constructor":2}') as JsonObject,
    ],
  ])('%s', async (_name, spec, sent, value) => {
    const checked = await check(spec, sent)

    expect(checked.ok && checked.value).toEqual(value)
  })

  test('in an open schema too, an alias with another value than its target is rejected', async () => {
    const checked = await check(tool({ path: {} }), { path: 'a', filePath: 'b' })

    expect(checked.ok).toBe(false)
  })

  test('a repair that would make valid arguments invalid is not applied', async () => {
    const spec = defineTool({
      name: 'x',
      description: '',
      pathFields: ['path'],
      parameters: { type: 'object', properties: { path: { type: 'string', enum: ['<a>'] } } },
      handler: (args) => args,
    })

    expect(await check(spec, { path: '<a>' })).toEqual({
      ok: true,
      value: { path: '<a>' },
      text: '{"path":"<a>"}',
      repairs: [],
    })
  })

  test('of alternatives, a string is repaired only if none accepts a string', async () => {
    const spec = tool({
      items: {
        items: {
          oneOf: [
            {
              properties: { kind: { const: 'a' }, on: { type: 'boolean' }, is_set: { type: 'boolean' } },
              required: ['kind'],
            },
            {
              properties: { kind: { const: 'b' }, on: { type: 'string' }, is_set: { type: 'boolean' } },
              required: ['kind'],
            },
          ],
        },
      },
    })
    const checked = await check(spec, { items: [{ kind: 'b', on: 'true', isSet: 'true' }] })

    expect(checked.ok && checked.value).toEqual({ items: [{ kind: 'b', on: 'true', is_set: true }] })
  })

  test('of very many repairs the first twelve are listed', async () => {
    const checked = await check(raw, { edits: Array.from({ length: 500 }, () => ({ oldString: 'a' })) })

    expect(checked.ok && checked.repairs).toHaveLength(13)
    expect(checked.ok && checked.repairs.at(-1)).toBe('and 488 more')
  })

  test('the model learns of the repairs in addition to the result', async () => {
    expect(await callTool(raw, { filePath: 'a' })).toEqual({
      ok: true,
      content: '{"path":"a"}',
      metadata: { repairs: ['`filePath` was read as `path`'] },
      value: { path: 'a' },
    })
  })
})
