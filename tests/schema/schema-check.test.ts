import { Script } from 'node:vm'
import { describe, expect, test, vi } from 'vitest'
import { schemaProblems } from '#schema/schema-check.js'
import type { JsonSchema } from '#util/json.js'

/** `path: message` of each issue; none for a value that fits. */
async function issues(schema: JsonSchema, value: unknown): Promise<string[]> {
  const problems = await schemaProblems(schema, value)
  if (problems.kind === 'broken') throw new Error(problems.message)
  if (problems.kind === 'valid') return []
  return problems.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`)
}

describe('problems that a JSON Schema finds, in the sentences of the validator', () => {
  test.each<[string, JsonSchema, unknown, string[]]>([
    ['type', { type: 'number' }, 'x', [': Instance type "string" is invalid. Expected "number".']],
    ['types', { type: ['string', 'null'] }, 5, [': Instance type "number" is invalid. Expected "string", "null".']],
    ['integer', { type: 'integer' }, 1.5, [': Instance type "number" is invalid. Expected "integer".']],
    [
      'required',
      { required: ['a', 'q"x'] },
      {},
      [': Instance does not have required property "a".', ': Instance does not have required property "q"x".'],
    ],
    [
      'required in depth',
      { properties: { a: { items: { required: ['b'] } } } },
      { a: [{}, { b: 1 }] },
      ['a.0: Instance does not have required property "b".'],
    ],
    ['enum', { enum: ['a', 1, null] }, 'b', [': Instance does not match any of ["a",1,null].']],
    ['const', { const: { a: 1 } }, 'b', [': Instance does not match {"a":1}.']],
    ['minimum', { minimum: 1 }, 0, [': 0 is less than 1.']],
    ['maximum', { maximum: 1 }, 2, [': 2 is greater than 1.']],
    ['exclusiveMinimum', { exclusiveMinimum: 1 }, 1, [': 1 is less than 1.']],
    ['exclusiveMaximum', { exclusiveMaximum: 1 }, 1, [': 1 is greater than or equal to 1.']],
    ['multipleOf', { multipleOf: 5 }, 1, [': 1 is not a multiple of 5.']],
    ['minLength', { minLength: 2 }, 'a', [': String is too short (1 < 2).']],
    ['maxLength', { maxLength: 1 }, 'ab', [': String is too long (2 > 1).']],
    ['pattern', { pattern: '^\\d+$' }, 'a', [': String does not match pattern.']],
    ['minItems', { minItems: 1 }, [], [': Array has too few items (0 < 1).']],
    ['maxItems', { maxItems: 2 }, [1, 2, 3], [': Array has too many items (3 > 2).']],
    ['uniqueItems', { uniqueItems: true }, [{ a: 1 }, { a: 1 }], [': Duplicate items at indexes 0 and 1.']],
    ['minProperties', { minProperties: 1 }, {}, [': Instance does not have at least 1 properties.']],
    ['maxProperties', { maxProperties: 1 }, { a: 1, b: 2 }, [': Instance does not have at least 1 properties.']],
    ['contains', { contains: { type: 'string' } }, [1, 2], [': Array does not contain item matching schema.']],
    ['not', { not: { required: ['a'] } }, { a: 1 }, [': Instance matched "not" schema.']],
    [
      'propertyNames',
      { propertyNames: { maxLength: 2 } },
      { abc: 1 },
      [': Property name "abc" does not match schema.', 'abc: String is too long (3 > 2).'],
    ],
    ['dependentRequired', { dependentRequired: { a: ['b'] } }, { a: 1 }, [': Instance has "a" but does not have "b".']],
    ['dependencies of names', { dependencies: { a: ['b'] } }, { a: 1 }, [': Instance has "a" but does not have "b".']],
    [
      'dependencies of schemas',
      { dependencies: { a: { required: ['c'] } } },
      { a: 1 },
      [': Instance does not have required property "c".'],
    ],
    [
      'dependentSchemas',
      { dependentSchemas: { a: { required: ['c'] } } },
      { a: 1 },
      [': Instance does not have required property "c".'],
    ],
    [
      'then',
      { if: { required: ['a'] }, then: { required: ['b'] } },
      { a: 1 },
      [': Instance does not match "then" schema.', ': Instance does not have required property "b".'],
    ],
    [
      'allOf',
      { allOf: [{ required: ['a'] }, { minProperties: 1 }] },
      {},
      [': Instance does not have required property "a".', ': Instance does not have at least 1 properties.'],
    ],
    ['a field that is forbidden', { properties: { a: false } }, { a: 1 }, [': Property "a" does not match schema.']],
    ['an item too many', { prefixItems: [{}], items: false }, [1, 2], [': Items did not match schema.']],
    [
      'unevaluatedProperties',
      { properties: { a: {} }, unevaluatedProperties: false },
      { b: 1 },
      [': Property "b" does not match unevaluated properties schema.'],
    ],
    [
      'a name with odd characters',
      { properties: { 'a/b ~%': { type: 'null' } } },
      { 'a/b ~%': 1 },
      ['a/b ~%: Instance type "number" is invalid. Expected "null".'],
    ],
    ['a wrong list', { type: 'array' }, {}, [': Instance type "object" is invalid. Expected "array".']],
    ['no value at all', { type: 'object' }, null, [': Instance type "null" is invalid. Expected "object".']],
  ])('%s', async (_name, schema, value, expected) => {
    expect(await issues(schema, value)).toEqual(expected)
  })

  test('an unknown field is reported with its parent as the place', async () => {
    const schema = { properties: { paths: { items: { properties: { path: {} }, additionalProperties: false } } } }

    expect(await issues(schema, { paths: [{ path: 1 }, { pth: 1, zzz: 2 }] })).toEqual([
      'paths.1: Property "pth" does not match additional properties schema.',
      'paths.1: Property "zzz" does not match additional properties schema.',
    ])
  })

  test('of alternatives, the problems of all follow the sentence about them', async () => {
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

    expect(await issues(schema, { shape: 5 })).toEqual([
      'shape: Instance does not match any subschemas.',
      'shape: Instance type "number" is invalid. Expected "null".',
      'shape: Instance type "number" is invalid. Expected "object".',
    ])
    expect(await issues(schema, { shape: { kind: 'ring' } })).toEqual([
      'shape: Instance does not match any subschemas.',
      'shape: Instance type "object" is invalid. Expected "null".',
      'shape.kind: Instance does not match "dot".',
      'shape: Instance does not have required property "length".',
      'shape.kind: Instance does not match "line".',
    ])
    expect(await issues(schema, { shape: { kind: 'dot' } })).toEqual([])
  })

  test('exactly one of several forms must fit', async () => {
    const schema = { oneOf: [{ required: ['a'] }, { required: ['b'] }, { required: ['c'] }] }

    expect(await issues(schema, { a: 1, b: 1 })).toEqual([
      ': Instance does not match exactly one subschema (2 matches).',
      ': Instance does not have required property "c".',
    ])
    expect(await issues(schema, {})).toHaveLength(4)
    expect(await issues(schema, { c: 1 })).toEqual([])
  })

  test('the content of a reference is reported in full', async () => {
    const schema = { properties: { a: { $ref: '#/$defs/x' } }, $defs: { x: { properties: { n: { maximum: 3 } } } } }

    expect(await issues(schema, { a: { n: 5 } })).toEqual(['a.n: 5 is greater than 3.'])
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
      ['a: String is too long (4 > 1).'],
    ],
    [
      'draft 4 has its own exclusive limits',
      { $schema: 'http://json-schema.org/draft-04/schema#', minimum: 1, exclusiveMinimum: true },
      1,
      [': 1 is less than or equal to  1.'],
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
      [
        'pattern: Instance type "number" is invalid. Expected "string".',
        'format: Instance type "number" is invalid. Expected "null".',
      ],
    ],
    ['unknown keywords are passed over', { 'x-order': { id: '%%' }, discriminator: 5 }, 1, []],
  ])('%s', async (_name, schema, value, expected) => {
    expect(await issues(schema, value)).toEqual(expected)
  })

  test('the schema itself is not written into, and may be frozen', async () => {
    const schema = Object.freeze({ type: 'object', properties: Object.freeze({ a: Object.freeze({ $ref: '#' }) }) })

    expect(await issues(schema, { a: { a: 5 } })).toEqual([
      'a.a: Instance type "number" is invalid. Expected "object".',
    ])
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
    expect(await issues(whole, { a: 'x' })).toEqual(['a: Instance type "string" is invalid. Expected "number".'])
  })

  const noMatch = ['a: String does not match pattern.']
  const tooLong = [': too long or too complicated to be checked; send less at once']
  const hostile: [string, JsonSchema, unknown, string[]][] = [
    ['nested quantifiers', { properties: { a: { pattern: '^(a+)+$' } } }, { a: `${'a'.repeat(60)}!` }, noMatch],
    ['a choice that overlaps', { properties: { a: { pattern: '^(a|aa)+$' } } }, { a: `${'a'.repeat(200)}!` }, noMatch],
    [
      'optional parts in a row',
      { properties: { a: { pattern: `^${'a?'.repeat(40)}b$` } } },
      { a: 'a'.repeat(40) },
      noMatch,
    ],
    [
      'a long text and many loops',
      { properties: { a: { pattern: 'a*a*a*a*a*b' } } },
      { a: 'a'.repeat(100_000) },
      noMatch,
    ],
    [
      'a long text and a reference back',
      { properties: { a: { pattern: '^(a+)\\1+$' } } },
      { a: `${'a'.repeat(9999)}!` },
      [],
    ],
    [
      'a pattern for names',
      { patternProperties: { '^(a+)+$': { type: 'null' } }, additionalProperties: { type: 'number' } },
      { [`${'a'.repeat(60)}!`]: 1, aa: 1 },
      ['aa: Instance type "number" is invalid. Expected "null".'],
    ],
    [
      'a pattern in dependencies',
      { dependencies: { a: { properties: { a: { pattern: '^(a+)+$' } } } } },
      { a: `${'a'.repeat(60)}!` },
      noMatch,
    ],
    [
      'a pattern where only a reference finds it',
      { properties: { a: { $ref: '#/x/y' } }, x: { y: { pattern: '^(a+)+$' } } },
      { a: `${'a'.repeat(60)}!` },
      noMatch,
    ],
    [
      'equal items sought in a huge list',
      { properties: { a: { uniqueItems: true } } },
      { a: Array.from({ length: 100_000 }, (_, index) => ({ index })) },
      [],
    ],
    [
      'equal items at the end of a huge list',
      { properties: { a: { uniqueItems: true } } },
      { a: [...Array.from({ length: 50_000 }, (_, index) => ({ index })), { index: 1 }] },
      tooLong,
    ],
    [
      'references that multiply',
      { anyOf: [{ type: 'null' }, { properties: { a: { allOf: [{ $ref: '#' }, { $ref: '#' }] } } }] },
      nested(60),
      tooLong,
    ],
  ]
  test.each(hostile)('%s cannot hang the process', async (_name, schema, value, expected) => {
    const startedAt = performance.now()

    expect(await issues(schema, value)).toEqual(expected)
    expect(performance.now() - startedAt).toBeLessThan(30_000)
  })

  test('no check needs a clock, a file or another thread', async () => {
    const schema = { properties: { a: { pattern: '^\\w+$' }, b: { uniqueItems: true }, c: { $ref: '#' } } }
    const run = vi.spyOn(Script.prototype, 'runInContext')
    const now = vi.spyOn(performance, 'now')
    const seen = [run, now]
    expect(await issues(schema, { a: 'x', b: [1, 2], c: { a: 'y' } })).toEqual([])
    expect(await issues(schema, { a: '!', b: [1, 1], c: { a: '?' } })).toHaveLength(3)
    const used = seen.map((each) => each.mock.calls.length)
    for (const each of seen) each.mockRestore()
    expect(used).toEqual([0, 0])
  })

  test('a large value that fits is not too much', async () => {
    const list = {
      type: 'array',
      items: { anyOf: [{ type: 'string', pattern: '^[a-z]+-\\d+$' }, { type: 'number' }] },
    } as const
    const value = Array.from({ length: 60_000 }, (_, index) => (index % 2 === 0 ? index : `a-${index}`))
    expect(await issues({ properties: { list } }, { list: value })).toEqual([])
  })

  test('patterns mean the same in both engines', async () => {
    const names = ['a', 'aa', 'ab', 'b', '', 'ü', 'x/y', 'A1', '\u00e9', '😀', '2020-01-02', 'a-b']
    for (const pattern of [
      '^(a+)+$',
      '^(a|b)*$',
      '^(\\d{4}-?)+(\\d\\d-?)*$',
      '(x\\/y)+',
      '^(\\u00e9|ü)+$',
      '^(?:[^a]+)+$',
      '(?=a)(a+)+',
    ]) {
      for (const name of names) {
        const expected = new RegExp(pattern, 'u').test(name) ? [] : [': String does not match pattern.']
        expect([pattern, name, await issues({ pattern }, name)]).toEqual([
          pattern,
          name,
          pattern.includes('?=') ? [] : expected,
        ])
      }
    }
  })

  test('a schema that consists only of itself accepts anything', async () => {
    expect(await issues({ $ref: '#' }, {})).toEqual([])
  })

  test('a list with more errors than the stack can hold is reported by its first', async () => {
    const schema = { properties: { list: { type: 'array', items: { type: 'number' } } } }

    expect(await issues(schema, { list: new Array(300_000).fill('x') })).toEqual([
      'list.0: Instance type "string" is invalid. Expected "number".',
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
