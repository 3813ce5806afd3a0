import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { ModelCapabilities } from 'thinharness'
import type { StructuredOutputMode } from '#core/model-session.js'
import { closedSchema, sortedKeys, wrappedAnswer } from '#schema/answer-schema.js'
import { CONTEXT, formatOf } from './support.js'

const object = z.object({ title: z.string(), n: z.number() })
const NATIVE: ModelCapabilities = { supportsJsonSchemaOutput: true, defaultStructuredOutputMode: 'native' }
const closedObject = {
  type: 'object',
  properties: { title: { type: 'string' }, n: { type: 'number' } },
  required: ['title', 'n'],
  additionalProperties: false,
}

describe('the mode', () => {
  test.each<[string, StructuredOutputMode | 'auto', ModelCapabilities, string]>([
    ['SO-08 auto is native for a model that prefers it', 'auto', NATIVE, 'native'],
    ['SO-08 auto is tool for a model without a preference', 'auto', {}, 'tool'],
    ['SO-08 auto follows the preference of the model', 'auto', { defaultStructuredOutputMode: 'prompted' }, 'prompted'],
    [
      'SO-29 native is available for a model that enforces schemas',
      'native',
      { supportsJsonSchemaOutput: true },
      'native',
    ],
    [
      'SO-32 native is attempted on request for a model that may reject it',
      'native',
      { permissiveNativeOverride: true },
      'native',
    ],
    ['SO-08 prompted needs no capability', 'prompted', { supportsTools: false }, 'prompted'],
  ])('%s', (_name, asked, capabilities, mode) => {
    expect(formatOf(object, asked, capabilities).mode).toBe(mode)
  })

  test.each<[string, StructuredOutputMode, ModelCapabilities, string]>([
    [
      'SO-28 SO-29 native, for a model that cannot be held to a schema',
      'native',
      {},
      '`outputMode` cannot be `native`: the model cannot be held to a JSON Schema by its provider; use `tool` or `prompted`.',
    ],
    [
      'tool, from a model without tools',
      'tool',
      { supportsTools: false },
      '`outputMode` cannot be `tool`: the model cannot call tools; use `prompted`.',
    ],
    ['text, for a type that is none', 'text', {}, '`outputMode` cannot be `text`: it is for answers of type string.'],
  ])('SO-28 a mode that the model does not support is rejected: %s', (_name, asked, capabilities, message) => {
    expect(() => formatOf(object, asked, capabilities)).toThrow(
      expect.objectContaining({ code: 'invalid_options', message }),
    )
  })

  test('SO-24 a string type is plain text in every mode, and adds nothing to the request; an enum of strings does not', () => {
    const text = { mode: 'text', tool: null, request: null, instructions: '' }
    expect(formatOf(z.string(), 'auto', {})).toMatchObject(text)
    expect(formatOf(z.string(), 'prompted', {})).toMatchObject(text)
    expect(formatOf(z.string(), 'native', NATIVE)).toMatchObject(text)
    expect(() => formatOf(z.string(), 'native', {})).toThrow('cannot be `native`')
    expect(formatOf(z.enum(['yes', 'no']), 'auto', {}).mode).toBe('tool')
  })
})

describe('the request of each mode', () => {
  test('SO-05 SO-07 tool mode sends final_result with the closed schema, including a property named title', () => {
    const { tool, request, instructions } = formatOf(object, 'tool', {})
    expect(tool).toMatchObject({ name: 'final_result', parameters: closedObject })
    expect([request, instructions]).toEqual([null, ''])
  })

  test('SO-08 SO-30 native mode sends a strict request and no tool', () => {
    expect(formatOf(object, 'native', NATIVE)).toMatchObject({
      tool: null,
      request: { name: 'final_result', schema: closedObject, strict: true },
      instructions: '',
    })
  })

  test('SO-31 nested objects are closed, and strict with all their properties required', () => {
    const nested = z.object({ list: z.array(z.object({ n: z.number() })), one: z.object({ s: z.string() }) })
    const { request } = formatOf(nested, 'native', NATIVE)
    expect(request).toMatchObject({
      strict: true,
      schema: {
        additionalProperties: false,
        properties: {
          list: { items: { additionalProperties: false } },
          one: { additionalProperties: false, required: ['s'] },
        },
      },
    })
    const optional = z.object({ one: z.object({ s: z.string().optional() }) })
    expect(formatOf(optional, 'native', NATIVE).request).toMatchObject({
      strict: true,
      schema: { properties: { one: { required: ['s'], properties: { s: { type: ['string', 'null'] } } } } },
    })
  })

  test('SO-30 native mode only closes the schemas of the host', () => {
    const document = { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'] }
    expect(formatOf(document, 'native', NATIVE).request?.schema).toEqual({
      ...document,
      additionalProperties: false,
    })
    expect(document).not.toHaveProperty('additionalProperties')
  })

  test('SO-03 prompted mode puts the key-sorted schema after the instructions', () => {
    const { instructions, tool, request } = formatOf(z.object({ b: z.number(), a: z.string() }), 'prompted', {})
    expect(instructions).toBe(
      'Give the final answer as JSON only, without any other text, fitting this JSON Schema:\n' +
        '{"additionalProperties":false,"properties":{"a":{"type":"string"},"b":{"type":"number"}},"required":["b","a"],"type":"object"}',
    )
    expect([tool, request]).toEqual([null, null])
  })
})

describe('answers of every shape', () => {
  const shapes: [string, z.ZodType, unknown, unknown][] = [
    ['a record', z.record(z.string(), z.number()), { a: 1 }, { a: 'x' }],
    ['an object', object, { title: 't', n: 1 }, { title: 't' }],
    ['a list', z.array(z.number()), [1, 2], [1, 'x']],
    ['a union', z.union([z.object({ a: z.number() }), z.object({ b: z.string() })]), { b: 'x' }, { c: 1 }],
    ['a number', z.number(), 5, 'five'],
    ['an enum', z.enum(['yes', 'no']), 'no', 'maybe'],
    ['null', z.object({ a: z.number() }).nullable(), null, 5],
  ]

  test.each(shapes)(
    'SO-10 SO-11 an answer of any shape is requested and read back in each mode: %s',
    async (_name, schema, good, bad) => {
      for (const mode of ['tool', 'native', 'prompted'] as const) {
        const format = formatOf(schema, mode, NATIVE)
        const sent = format.tool?.parameters ?? format.request?.schema
        const isWrapped = sent !== undefined && JSON.stringify(sent['required']) === '["value"]'
        const read = async (value: unknown): Promise<unknown> => {
          const text = JSON.stringify(isWrapped ? { value } : value)
          return mode === 'tool' ? format.parseArguments(text, CONTEXT) : format.parseText(text, CONTEXT)
        }
        // An object must be at the root wherever a provider reads the schema.
        if (sent !== undefined) expect(sent).toMatchObject({ type: 'object' })
        expect(await read(good)).toMatchObject({ ok: true, value: good, json: good })
        expect(await read(bad)).toMatchObject({ ok: false })
      }
    },
  )

  test('SO-10 lists are wrapped in value, plain objects are not', () => {
    expect(formatOf(z.array(z.number()), 'tool', {}).tool?.parameters).toEqual({
      type: 'object',
      properties: { value: { type: 'array', items: { type: 'number' } } },
      required: ['value'],
      additionalProperties: false,
    })
    expect(formatOf(object, 'tool', {}).tool?.parameters).toEqual(closedObject)
  })

  test('SO-11 unions are wrapped and hold no references', () => {
    const leaf = z.object({ a: z.number() })
    const schema = z.union([leaf, z.object({ b: leaf })])
    const text = JSON.stringify(formatOf(schema, 'tool', {}).tool?.parameters)
    expect(text).toContain('"value"')
    expect(text).not.toContain('$ref')
  })

  test('SO-11 a recursive type keeps its definitions, at the root of the schema', () => {
    interface Tree {
      readonly left?: Tree | undefined
    }
    const tree: z.ZodType<Tree> = z.lazy(() => z.object({ left: tree.optional() }))
    const sent = formatOf(z.array(tree), 'tool', {}).tool?.parameters
    expect(sent).toHaveProperty('$defs')
    expect(JSON.stringify(sent?.['properties'])).not.toContain('$defs":')
  })

  test('SO-02 many problems are reported briefly', async () => {
    const format = formatOf(z.array(z.number()), 'tool', {})
    const parsed = await format.parseArguments(
      JSON.stringify({ value: Array.from({ length: 500 }, () => 'x') }),
      CONTEXT,
    )
    expect(parsed).toMatchObject({ ok: false })
    const problem = parsed.ok ? '' : parsed.problem
    expect(problem.split('\n')).toHaveLength(13)
    expect(problem).toMatch(/\n- and more problems$/)
  })
})

describe('JSON Schema documents', () => {
  test('SO-31 closing leaves objects alone that define additional properties', () => {
    const open = { type: 'object', properties: {}, additionalProperties: { type: 'string' } }
    expect(closedSchema({ type: 'object', properties: { open } })).toEqual({
      type: 'object',
      properties: { open },
      additionalProperties: false,
    })
    expect(closedSchema({ type: 'string' })).toEqual({ type: 'string' })
  })

  test('SO-10 wrapping moves the definitions to the new root', () => {
    expect(wrappedAnswer({ $ref: '#/$defs/a', $defs: { a: { type: 'number' } } })).toEqual({
      type: 'object',
      properties: { value: { $ref: '#/$defs/a' } },
      required: ['value'],
      additionalProperties: false,
      $defs: { a: { type: 'number' } },
    })
  })

  test('SO-03 keys are sorted at every depth, lists are not', () => {
    expect(JSON.stringify(sortedKeys({ b: [{ d: 1, c: 2 }, 3], a: null }))).toBe('{"a":null,"b":[{"c":2,"d":1},3]}')
  })
})
