import { describe, expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { HarnessError } from '#contracts/errors.js'
import { callTool } from '#harness/call-tool.js'
import { defineTool } from '#core/tools/define-tool.js'
import type { ToolOptions } from '#core/tools/tool-options.js'
import type { ApprovalContext, ToolContext, ToolSpec } from '#core/tools/tool-spec.js'
import type { JsonObject, JsonSchema } from '#util/json.js'
import { libraryOf } from './support/standard-schema.js'

const noArguments: JsonSchema = { type: 'object', properties: {} }

describe('defineTool', () => {
  test('HC-15 a JSON Schema tool is offered with its schema unchanged', () => {
    const parameters = {
      $schema: 'http://json-schema.org/draft-07/schema#',
      title: 'Lookup',
      type: 'object',
      properties: { id: { type: 'string', title: 'Id' } },
    }
    const tool = defineTool({ name: 'lookup', description: 'Finds.', parameters, handler: () => 1 })

    expect(tool.parameters).toEqual(parameters)
    expect(tool.validate).toBeUndefined()
  })

  test('HC-16 a typed tool shows its constraints, applies defaults and transforms, and rejects invalid arguments', async () => {
    const tool = defineTool({
      name: 'page',
      description: 'Reads a page.',
      parameters: z.object({
        number: z.int().min(1).max(9).describe('Which one'),
        size: z.number().default(20),
        tags: z
          .array(z.enum(['a', 'b']))
          .min(1)
          .optional(),
        name: z.string().transform((name) => name.toUpperCase()),
      }),
      handler: (args) => args,
    })

    expect(tool.parameters).toEqual({
      type: 'object',
      properties: {
        number: { type: 'integer', minimum: 1, maximum: 9, description: 'Which one' },
        size: { type: 'number', default: 20 },
        tags: { type: 'array', minItems: 1, items: { type: 'string', enum: ['a', 'b'] } },
        name: { type: 'string' },
      },
      required: ['number', 'name'],
      additionalProperties: false,
    })
    expect(await callTool(tool, { number: 3, name: 'x' })).toEqual({
      ok: true,
      content: '{"number":3,"size":20,"name":"X"}',
      metadata: {},
      value: { name: 'X', number: 3, size: 20 },
    })
    expect(await callTool(tool, { number: 0, name: 'x' })).toMatchObject({
      ok: false,
      metadata: {
        error_type: 'ValidationError',
        retry: true,
        errors: [{ type: 'too_small', loc: ['number'], msg: 'Too small: expected number to be >=1' }],
      },
    })
  })

  test('the arguments of handler and approval rule have the type of the schema', () => {
    defineTool({
      name: 'typed',
      description: '',
      parameters: z.object({
        id: z.string(),
        count: z.number().default(1),
        at: z.string().transform((at) => new Date(at)),
      }),
      requiresApproval: (args, context) => {
        expectTypeOf(args).toEqualTypeOf<{ id: string; count: number; at: Date }>()
        expectTypeOf(context).toEqualTypeOf<ApprovalContext>()
        return args.count > 3
      },
      handler: (args, context) => {
        expectTypeOf(args).toEqualTypeOf<{ id: string; count: number; at: Date }>()
        expectTypeOf(context).toEqualTypeOf<ToolContext>()
      },
    })
    defineTool({
      name: 'raw',
      description: '',
      parameters: { type: 'object', properties: { id: { type: 'string' } } },
      handler: (args) => {
        expectTypeOf(args).toEqualTypeOf<JsonObject>()
      },
    })
    const other = libraryOf<{ n: number }>({ type: 'object' }, () => ({ value: { n: 1 } }))
    const tool = defineTool({
      name: 'other',
      description: '',
      parameters: other,
      handler: ({ n }) => {
        expectTypeOf(n).toEqualTypeOf<number>()
      },
    })
    expectTypeOf(tool).toEqualTypeOf<ToolSpec>()
    expectTypeOf<(args: { a: number }) => number>().not.toExtend<ToolOptions<z.ZodType<{ a: string }>>['handler']>()
  })

  test('an approval rule receives the parsed arguments', async () => {
    const tool = defineTool({
      name: 'pay',
      description: '',
      parameters: z.object({ amount: z.number().default(5) }),
      requiresApproval: ({ amount }) => amount > 3,
      handler: () => 'paid',
    })
    const checked = await tool.validate?.({})
    const rule = tool.requiresApproval
    if (checked?.ok !== true || typeof rule !== 'function') throw new Error('Expected a rule.')

    expect(await rule(checked.value, { runId: 'r', callId: 'c', metadata: {} })).toBe(true)
  })

  test('a tool is frozen, and has exactly the options that were given', () => {
    const options = {
      name: 'all',
      description: 'Has all.',
      annotations: { readOnly: true },
      sequential: true,
      onUnknownOutcome: 'pause',
      maxRetries: 0,
      timeoutMs: 1,
      maxOutputChars: 10,
      instructions: 'Use it.',
      aliases: { file: 'path' },
      pathFields: ['path'],
      metadata: { team: 'x' },
      requiresApproval: true,
    } as const
    const parameters = { type: 'object', properties: { path: { type: 'string' } } }
    const tool = defineTool({ ...options, parameters, handler: () => 1 })

    expect(tool).toEqual({ ...options, parameters, call: expect.any(Function) as unknown })
    expect(Object.isFrozen(tool)).toBe(true)
    expect(
      Object.keys(defineTool({ name: 'few', description: '', parameters: noArguments, handler: () => 1 })).sort(),
    ).toEqual(['call', 'description', 'name', 'parameters'])
  })

  test('a JSON Schema without a type becomes an object at the root', () => {
    const tool = defineTool({ name: 'x', description: '', parameters: { properties: { a: {} } }, handler: () => 1 })

    expect(tool.parameters).toEqual({ type: 'object', properties: { a: {} } })
  })
})

describe('options that defineTool rejects', () => {
  const good = { name: 'x', description: 'd', parameters: noArguments, handler: () => 1 }
  test.each<[string, Record<string, unknown>, string]>([
    [
      'TR-15 a negative retry budget',
      { maxRetries: -1 },
      'Expected `maxRetries` of tool `x` to be a whole number from 0 up, got `-1`.',
    ],
    [
      'a budget that is no whole number',
      { maxRetries: 1.5 },
      'Expected `maxRetries` of tool `x` to be a whole number from 0 up, got `1.5`.',
    ],
    [
      'an empty name',
      { name: '' },
      'Expected `name` of a tool to be 1 to 64 letters, digits, `_` or `-`, got an empty string.',
    ],
    [
      'a name with a space',
      { name: 'a b' },
      'Expected `name` of a tool to be 1 to 64 letters, digits, `_` or `-`, got `a b`.',
    ],
    [
      'a name with a line break at its end',
      { name: 'a\n' },
      'Expected `name` of a tool to be 1 to 64 letters, digits, `_` or `-`, got `a\n`.',
    ],
    ['a name that is too long', { name: 'n'.repeat(65) }, 'Expected `name` of a tool to be 1 to 64 letters, digits'],
    [
      'a missing name',
      { name: undefined },
      'Expected `name` of a tool to be 1 to 64 letters, digits, `_` or `-`, got nothing.',
    ],
    [
      'a missing description',
      { description: undefined },
      'Expected `description` of tool `x` to be a string, got nothing.',
    ],
    ['a missing handler', { handler: undefined }, 'Expected `handler` of tool `x` to be a function, got nothing.'],
    ['an unknown option', { timeout: 5 }, 'Unknown option of tool `x`: `timeout`. Did you mean `timeoutMs`?'],
    [
      'a time limit of 0',
      { timeoutMs: 0 },
      'Expected `timeoutMs` of tool `x` to be a whole number from 1 to 2147483647, got `0`.',
    ],
    ['a time that no timer knows', { timeoutMs: 2 ** 31 }, 'Expected `timeoutMs` of tool `x`'],
    [
      'no room for output',
      { maxOutputChars: 0 },
      'Expected `maxOutputChars` of tool `x` to be a whole number from 1 up, got `0`.',
    ],
    [
      'an unknown order',
      { sequential: 'yes' },
      'Expected `sequential` of tool `x` to be one of `true`, `false`, `alone`, got `yes`.',
    ],
    [
      'a rule that is none',
      { requiresApproval: 1 },
      'Expected `requiresApproval` of tool `x` to be a boolean or `always` or a function, got `1`.',
    ],
    [
      'an unknown policy',
      { onUnknownOutcome: 'again' },
      'Expected `onUnknownOutcome` of tool `x` to be one of `retry`, `report`, `pause`, got `again`.',
    ],
    [
      'an unknown annotation',
      { annotations: { readonly: true } },
      'Unknown option of tool `x`: `annotations.readonly`. Did you mean `readOnly`?',
    ],
    [
      'an annotation that is no flag',
      { annotations: { readOnly: 1 } },
      'Expected `annotations.readOnly` of tool `x` to be a boolean, got `1`.',
    ],
    [
      'an alias of no field',
      { aliases: { file: 'pth' }, parameters: { type: 'object', properties: { path: {} } } },
      'Expected `aliases` of tool `x` to name fields of its parameters, got `pth`. Did you mean `path`?',
    ],
    [
      'a path field that is none',
      { pathFields: ['a'] },
      'Expected `pathFields` of tool `x` to name fields of its parameters, got `a`.',
    ],
    ['aliases that are no names', { aliases: { a: 1 } }, 'Expected `aliases.a` of tool `x` to be a string, got `1`.'],
    [
      'missing parameters',
      { parameters: undefined },
      'Expected `parameters` of tool `x` to be a zod schema (from 4.2), another Standard Schema or a JSON Schema object, got undefined.',
    ],
    ['parameters of a class', { parameters: new Map() }, 'got an object of a class.'],
    [
      'a list at the root',
      { parameters: { type: 'array' } },
      'Expected `parameters` of tool `x` to be an object at the root, got `array`.',
    ],
    [
      'a typed text at the root',
      { parameters: z.string() },
      'Expected `parameters` of tool `x` to be an object at the root, got `string`.',
    ],
    [
      'a choice at the root',
      { parameters: z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]) },
      'Expected `parameters` of tool `x` to be an object at the root, got several schemas joined: put them into a field.',
    ],
    [
      'a date',
      { parameters: z.object({ from: z.object({ day: z.date() }) }) },
      '`parameters` of tool `x` cannot be given to a model: `from.day`: Date cannot be represented in JSON Schema',
    ],
    [
      'a bigint',
      { parameters: z.object({ n: z.array(z.bigint()) }) },
      '`parameters` of tool `x` cannot be given to a model: `n.items`: BigInt cannot be represented in JSON Schema',
    ],
    [
      'a library that emits no JSON Schema',
      { parameters: { '~standard': { version: 1, vendor: 'tiny', validate: () => ({ value: 1 }) } } },
      '`parameters` of tool `x` cannot be given to a model: this schema of `tiny` emits no JSON Schema',
    ],
  ])('%s', (_name, change, message) => {
    const define = (): unknown => defineTool({ ...good, ...change })

    expect(define).toThrow(HarnessError)
    expect(define).toThrow(message)
    expect(define).toThrow(expect.objectContaining({ code: 'invalid_options' }))
  })

  test('circular parameters', () => {
    const circle: Record<string, unknown> = { type: 'object' }
    circle['properties'] = { self: circle }

    expect(() => defineTool({ ...good, parameters: circle as JsonSchema })).toThrow(
      'Expected `parameters` of tool `x` to be plain JSON',
    )
  })
})
