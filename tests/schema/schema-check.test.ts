import { describe, expect, test } from 'vitest'
import { issuesOf } from '#schema/findings.js'
import { schemaProblems } from '#schema/schema-check.js'
import type { JsonSchema } from '#util/json.js'

/** `path: message` of each issue; none for a value that fits. */
async function issues(schema: JsonSchema, value: unknown): Promise<string[]> {
  const problems = await schemaProblems(schema, value)
  if (problems.kind === 'broken') throw new Error(problems.message)
  if (problems.kind === 'valid') return []
  return issuesOf(problems.findings, value, schema).map((issue) => `${issue.path.join('.')}: ${issue.message}`)
}

describe('problems that a JSON Schema finds, in plain words', () => {
  test.each<[string, JsonSchema, unknown, string[]]>([
    ['type', { type: 'number' }, 'x', [': expected a number, got a string']],
    ['types', { type: ['string', 'null'] }, 5, [': expected a string or null, got a number']],
    ['integer', { type: 'integer' }, 1.5, [': expected a whole number, got a number with a fraction']],
    ['required', { required: ['a', 'q"x'] }, {}, ['a: missing', 'q"x: missing']],
    [
      'required in depth',
      { properties: { a: { items: { required: ['b'] } } } },
      { a: [{}, { b: 1 }] },
      ['a.0.b: missing'],
    ],
    ['enum', { enum: ['a', 1, null] }, 'b', [': must be one of "a", 1, null']],
    ['const', { const: { a: 1 } }, 'b', [': must be {"a":1}']],
    ['minimum', { minimum: 1 }, 0, [': must be at least 1']],
    ['maximum', { maximum: 1 }, 2, [': must be at most 1']],
    ['exclusiveMinimum', { exclusiveMinimum: 1 }, 1, [': must be more than 1']],
    ['exclusiveMaximum', { exclusiveMaximum: 1 }, 1, [': must be less than 1']],
    ['multipleOf', { multipleOf: 5 }, 1, [': must be a multiple of 5']],
    ['minLength', { minLength: 2 }, 'a', [': must have at least 2 characters']],
    ['maxLength', { maxLength: 1 }, 'ab', [': must have at most 1 character']],
    ['pattern', { pattern: '^\\d+$' }, 'a', [': must match the pattern ^\\d+$']],
    ['minItems', { minItems: 1 }, [], [': must have at least 1 item']],
    ['maxItems', { maxItems: 2 }, [1, 2, 3], [': must have at most 2 items']],
    ['uniqueItems', { uniqueItems: true }, [{ a: 1 }, { a: 1 }], [': must not hold the same item twice']],
    ['minProperties', { minProperties: 1 }, {}, [': must have at least 1 field']],
    ['maxProperties', { maxProperties: 1 }, { a: 1, b: 2 }, [': must have at most 1 field']],
    ['contains', { contains: { type: 'string' } }, [1, 2], [': holds no item of the kind that is needed']],
    ['not', { not: { required: ['a'] } }, { a: 1 }, [': has a form that is not allowed']],
    ['propertyNames', { propertyNames: { maxLength: 2 } }, { abc: 1 }, ['abc: a field of this name is not allowed']],
    ['dependentRequired', { dependentRequired: { a: ['b'] } }, { a: 1 }, ['b: missing']],
    ['dependencies of names', { dependencies: { a: ['b'] } }, { a: 1 }, ['b: missing']],
    ['dependencies of schemas', { dependencies: { a: { required: ['c'] } } }, { a: 1 }, ['c: missing']],
    ['dependentSchemas', { dependentSchemas: { a: { required: ['c'] } } }, { a: 1 }, ['c: missing']],
    ['then', { if: { required: ['a'] }, then: { required: ['b'] } }, { a: 1 }, ['b: missing']],
    [
      'allOf',
      { allOf: [{ required: ['a'] }, { minProperties: 1 }] },
      {},
      ['a: missing', ': must have at least 1 field'],
    ],
    ['a field that is forbidden', { properties: { a: false } }, { a: 1 }, ['a: is not allowed here']],
    ['an item too many', { prefixItems: [{}], items: false }, [1, 2], ['1: one item too many']],
    [
      'unevaluatedProperties',
      { properties: { a: {} }, unevaluatedProperties: false },
      { b: 1 },
      ['b: unknown field; did you mean `a`?'],
    ],
    [
      'a name with odd characters',
      { properties: { 'a/b ~%': { type: 'null' } } },
      { 'a/b ~%': 1 },
      ['a/b ~%: expected null, got a number'],
    ],
    ['a wrong list', { type: 'array' }, {}, [': expected a list, got an object']],
    ['no value at all', { type: 'object' }, null, [': expected an object, got null']],
  ])('%s', async (_name, schema, value, expected) => {
    expect(await issues(schema, value)).toEqual(expected)
  })

  test('an unknown field is reported with a suggestion, and without its parent', async () => {
    const schema = { properties: { paths: { items: { properties: { path: {} }, additionalProperties: false } } } }

    expect(await issues(schema, { paths: [{ path: 1 }, { pth: 1, zzz: 2 }] })).toEqual([
      'paths.1.pth: unknown field; did you mean `path`?',
      'paths.1.zzz: unknown field',
    ])
  })

  test('of alternatives, the intended one is reported', async () => {
    const dot = {
      type: 'object',
      properties: { kind: { const: 'dot' } },
      required: ['kind'],
      additionalProperties: false,
    }
    const line = {
      type: 'object',
      properties: { kind: { const: 'line' }, length: { type: 'number' } },
      required: ['kind', 'length'],
    }
    const schema = {
      properties: { shape: { anyOf: [{ type: 'null' }, { $ref: '#/$defs/dot' }, line] } },
      $defs: { dot },
    }

    expect(await issues(schema, { shape: 5 })).toEqual(['shape: expected null or an object, got a number'])
    expect(await issues(schema, { shape: { kind: 'ring' } })).toEqual(['shape.kind: must be one of "dot", "line"'])
    expect(await issues(schema, { shape: { kind: 'line', length: 'x' } })).toEqual([
      'shape.length: expected a number, got a string',
    ])
    expect(await issues(schema, { shape: { kind: 'dot', x: 1 } })).toEqual(['shape.x: unknown field'])
  })

  test('exactly one of several forms must fit', async () => {
    const schema = { oneOf: [{ required: ['a'] }, { required: ['b'] }, { required: ['c'] }] }

    expect(await issues(schema, { a: 1, b: 1 })).toEqual([': has more than one of the allowed forms at once'])
    expect(await issues(schema, {})).toEqual(['a: missing'])
    expect(await issues(schema, { c: 1 })).toEqual([])
  })

  test('the content of a reference is reported in full', async () => {
    const schema = { properties: { a: { $ref: '#/$defs/x' } }, $defs: { x: { properties: { n: { maximum: 3 } } } } }

    expect(await issues(schema, { a: { n: 5 } })).toEqual(['a.n: must be at most 3'])
  })
})

describe('an untrusted schema', () => {
  test.each<[string, JsonSchema, unknown, string[]]>([
    [
      'draft 7 ignores what stands beside a reference',
      {
        $schema: 'http://json-schema.org/draft-07/schema#',
        properties: { a: { $ref: '#/definitions/a', maxLength: 1 } },
        definitions: { a: { type: 'string' } },
      },
      { a: 'long' },
      [],
    ],
    [
      '2020-12 does not',
      { properties: { a: { $ref: '#/$defs/a', maxLength: 1 } }, $defs: { a: { type: 'string' } } },
      { a: 'long' },
      ['a: must have at most 1 character'],
    ],
    [
      'draft 4 has its own exclusive limits',
      { $schema: 'http://json-schema.org/draft-04/schema#', minimum: 1, exclusiveMinimum: true },
      1,
      [': must be at least 1'],
    ],
    ['a format is left to the tool', { format: 'date-time' }, 'yesterday', []],
    ['a pattern that JavaScript cannot read is left to the tool', { pattern: '(?P<name>a)[\\w-.]' }, 'x', []],
    [
      'so are fields by such a pattern',
      { patternProperties: { '(?i)x': { type: 'null' } }, additionalProperties: false },
      { x: 1 },
      [],
    ],
    [
      'a field named `pattern` is a field',
      { properties: { pattern: { type: 'string' }, format: { type: 'null' } } },
      { pattern: 1, format: 1 },
      ['pattern: expected a string, got a number', 'format: expected null, got a number'],
    ],
    ['unknown keywords are passed over', { 'x-order': { id: '%%' }, discriminator: 5 }, 1, []],
  ])('%s', async (_name, schema, value, expected) => {
    expect(await issues(schema, value)).toEqual(expected)
  })

  test('the schema itself is not written into, and may be frozen', async () => {
    const schema = Object.freeze({ type: 'object', properties: Object.freeze({ a: Object.freeze({ $ref: '#' }) }) })

    expect(await issues(schema, { a: { a: 5 } })).toEqual(['a.a: expected an object, got a number'])
    expect(Reflect.ownKeys(schema)).toEqual(['type', 'properties'])
  })

  test.each(['#/$defs/gone', 'https://example.test/gone.json', 'gone'])(
    'a reference that leads nowhere accepts anything, and the rest is checked: %s',
    async ($ref) => {
      const schema = { type: 'object', properties: { a: { $ref }, b: { type: 'number' } }, required: ['a'] }
      expect(await issues(schema, { a: { any: 1 }, b: 2 })).toEqual([])
      expect(await issues(schema, { b: 'x' })).toHaveLength(2)
    },
  )

  test.each<[string, JsonSchema]>([
    ['a keyword of a wrong kind', { anyOf: {}, minimum: '1', properties: { b: { type: 'any', required: true } } }],
    ['an id that is no URL', { $id: 'http://[' }],
    ['a reference that is no URL', { properties: { b: { $ref: 'http://[' } } }],
  ])('%s is not checked, and the rest is', async (_name, schema) => {
    const whole = { ...schema, properties: { ...(schema['properties'] as object | undefined), a: { type: 'number' } } }
    expect(await issues(whole, { a: 1, b: 'x' })).toEqual([])
    expect(await issues(whole, { a: 'x' })).toEqual(['a: expected a number, got a string'])
  })

  const hostile: [string, JsonSchema, unknown][] = [
    ['nested quantifiers', { properties: { a: { pattern: '^(a+)+$' } } }, { a: `${'a'.repeat(60)}!` }],
    ['a choice that overlaps', { properties: { a: { pattern: '^(a|aa)+$' } } }, { a: `${'a'.repeat(200)}!` }],
    ['a long text and many loops', { properties: { a: { pattern: 'a*a*a*a*a*b' } } }, { a: 'a'.repeat(100_000) }],
    ['a pattern for names', { patternProperties: { '^(a+)+$': {} } }, { [`${'a'.repeat(60)}!`]: 1 }],
    [
      'a pattern in dependencies',
      { dependencies: { a: { properties: { a: { pattern: '^(a+)+$' } } } } },
      { a: `${'a'.repeat(60)}!` },
    ],
    [
      'a pattern where only a reference finds it',
      { properties: { a: { $ref: '#/x/y' } }, x: { y: { pattern: '^(a+)+$' } } },
      { a: `${'a'.repeat(60)}!` },
    ],
    [
      'equal items sought in a huge list',
      { properties: { a: { uniqueItems: true } } },
      { a: Array.from({ length: 100_000 }, (_, index) => ({ index })) },
    ],
    [
      'references that multiply',
      { anyOf: [{ type: 'null' }, { properties: { a: { allOf: [{ $ref: '#' }, { $ref: '#' }] } } }] },
      nested(60),
    ],
  ]
  test.each(hostile)('%s cannot hang the process', async (_name, schema, value) => {
    const startedAt = performance.now()

    expect(await issues(schema, value)).toEqual([': too long or too complicated to be checked; send less at once'])
    expect(performance.now() - startedAt).toBeLessThan(30_000)
  })

  test('a schema that consists only of itself accepts anything', async () => {
    expect(await issues({ $ref: '#' }, {})).toEqual([])
  })

  test('a list with more errors than the stack can hold is reported by its first', async () => {
    const schema = { properties: { list: { type: 'array', items: { type: 'number' } } } }

    expect(await issues(schema, { list: new Array(300_000).fill('x') })).toEqual([
      'list.0: expected a number, got a string',
    ])
  })

  test('a name of broken Unicode is reported', async () => {
    const schema = { additionalProperties: { type: 'number' } }

    expect(await issues(schema, { '\ud800': 'x' })).toEqual([': a field name in it is broken Unicode'])
  })
})

function nested(levels: number): unknown {
  let value: unknown = {}
  for (let level = 0; level < levels; level++) value = { a: value }
  return value
}
