import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, test } from 'vitest'
import { defineTool } from 'thinharness'
import type { JsonSchema, JsonValue, Model, RequestConstants, ToolSpec } from 'thinharness'
import { anthropic, openai, openaiChat, openrouter } from 'thinharness/providers'
import { scriptedProvider } from 'thinharness/testing'
import type { ProviderApi } from 'thinharness/testing'
import { outputFormat } from '#run/output/parse-answer.js'
import type { OutputFormat } from '#core/state/output-format.js'
import { checkArguments } from '#core/tools/boundary/check-arguments.js'
import { jsonSchemaOf } from '#schema/schema.js'
import { CONTEXT } from '../run/output/support.js'
import { expectValidRequest } from '../support/request-schemas.js'
import type { RequestApi } from '../support/request-schemas.js'
import { TROUBLESOME } from '../support/troublesome-schemas.js'
import type { Troublesome } from '../support/troublesome.js'

const KEY = { apiKey: 'any', maxRetries: 0 }
const MODELS: readonly { name: ProviderApi; make: (baseUrl: string) => Model; apis: readonly RequestApi[] }[] = [
  {
    name: 'responses',
    make: (baseUrl) => openai('gpt-5.5', { ...KEY, baseUrl }),
    apis: ['openai-responses', 'openai-responses-sdk'],
  },
  {
    name: 'chat',
    make: (baseUrl) => openaiChat('gpt-4.1', { ...KEY, baseUrl }),
    apis: ['openai-chat', 'openai-chat-sdk'],
  },
  { name: 'openrouter', make: (baseUrl) => openrouter('x/y', { ...KEY, baseUrl }), apis: [] },
  {
    name: 'messages',
    make: (baseUrl) => anthropic('claude-sonnet-5', { ...KEY, baseUrl }),
    apis: ['anthropic-messages'],
  },
]
const NATIVE = { supportsJsonSchemaOutput: true, defaultStructuredOutputMode: 'native' } as const

test('SO-30 there are at least 55 troublesome schemas', () => {
  expect(TROUBLESOME.length).toBeGreaterThanOrEqual(55)
  expect(new Set(TROUBLESOME.map(({ name }) => name)).size).toBe(TROUBLESOME.length)
})

describe.each(MODELS)('troublesome schemas to $name', ({ name, make, apis }) => {
  test('SO-30 SO-31 tools are sent in a form that the API accepts, with plain objects as roots', async () => {
    const [body] = await sent(name, make, { tools: TROUBLESOME.map(toolOf) })
    for (const api of apis) expectValidRequest(api, body)
    const schemas = toolSchemas(body)
    expect(schemas).toHaveLength(TROUBLESOME.length)
    for (const schema of schemas) {
      expect(schema).toMatchObject({ type: 'object', properties: expect.anything() as unknown })
      for (const keyword of ['anyOf', 'oneOf', 'allOf', 'not', 'enum', '$ref'])
        expect(schema).not.toHaveProperty([keyword])
      new Ajv2020({ strict: false, logger: false, validateFormats: false }).compile(withoutDraft(schema))
    }
  })

  test.each(TROUBLESOME)(
    'SO-30 SO-31 an answer schema is sent in a form that the API accepts: $name',
    async ({ schema }) => {
      const { capabilities } = make('http://127.0.0.1:1')
      const modes = capabilities.supportsJsonSchemaOutput === true ? (['auto', 'native'] as const) : (['auto'] as const)
      for (const mode of modes) {
        let format: OutputFormat
        try {
          format = outputFormat({ type: schema, mode }, capabilities)
        } catch (error) {
          // A schema that a provider cannot enforce is rejected here, with advice.
          expect([mode, capabilities.nativeSchemas, error]).toMatchObject([
            'native',
            'closed',
            { code: 'invalid_options' },
          ])
          continue
        }
        const [body] = await sent(name, make, constantsOf(format))
        for (const api of apis) expectValidRequest(api, body)
      }
    },
  )
})

describe.each(TROUBLESOME)('$name', (each) => {
  const { schema, fits, misfits } = each

  test('SO-30 arguments are validated against the original schema', async () => {
    const spec = toolOf(each, 0)
    for (const value of fits) expect(await checkArguments(spec, JSON.stringify(value))).toMatchObject({ ok: true })
    for (const value of misfits) expect(await checkArguments(spec, JSON.stringify(value))).toMatchObject({ ok: false })
  })

  test('SO-10 SO-11 SO-31 answers are requested in a form that the API accepts, and validated against the original schema', async () => {
    for (const mode of ['native', 'tool', 'prompted'] as const) {
      const format = outputFormat({ type: schema, mode }, NATIVE)
      const form = format.request?.schema ?? format.tool?.parameters ?? null
      const isWrapped = form !== null && Object.keys(form['properties'] ?? {}).join() === 'value' && !hasOwnValue(each)
      const written = (value: JsonValue): JsonValue => {
        const answer = isWrapped ? { value } : value
        return format.request?.strict === true && form !== null ? filled(form, form, answer) : answer
      }
      const read = (value: JsonValue) => {
        const text = JSON.stringify(written(value))
        return mode === 'tool' ? format.parseArguments(text, CONTEXT) : format.parseText(text, CONTEXT)
      }
      for (const value of fits) {
        if (form !== null) expect([value, problems(form, written(value))]).toEqual([value, []])
        expect(await read(value)).toMatchObject({ ok: true, json: value })
      }
      for (const value of misfits) expect(await read(value)).toMatchObject({ ok: false })
      if (format.request?.strict === true) expect(strictProblems(format.request.schema)).toEqual([])
    }
  })
})

function toolOf({ schema }: Troublesome, index: number): ToolSpec {
  const options = { name: `tool_${index}`, description: 'Does it.', handler: () => 'ok' }
  return defineTool({ ...options, parameters: schema })
}

function constantsOf({ tool, request, instructions }: OutputFormat): Partial<RequestConstants> {
  return { tools: tool === null ? [] : [tool], structuredOutput: request, instructions }
}

/** The bodies of requests with these constants. */
async function sent(
  api: ProviderApi,
  make: (baseUrl: string) => Model,
  constants: Partial<RequestConstants>,
): Promise<readonly unknown[]> {
  await using provider = await scriptedProvider()
  provider.always('ok')
  const content = [{ type: 'text', text: 'Go.' }] as const
  const entry = { role: 'user', id: 'e1', at: '2026-01-01T00:00:00.000Z', content } as const
  const model = make(provider.url[api])
  const all = { instructions: '', tools: [], structuredOutput: null, settings: {}, ...constants }
  await model.openSession().turn([entry], all, { generation: 0, signal: new AbortController().signal })
  await model.close?.()
  return provider.requests.map(({ body }) => body)
}

function toolSchemas(body: unknown): readonly JsonSchema[] {
  const { tools } = body as { tools: readonly Record<string, unknown>[] }
  return tools.map((tool) => {
    const { parameters, input_schema: schema } = { ...tool, ...(tool['function'] as object | undefined) } as Record<
      string,
      unknown
    >
    return (parameters ?? schema) as JsonSchema
  })
}

/** In older drafts words meant other things: `items` may be a list. */
function withoutDraft({ $schema, ...schema }: JsonSchema): JsonSchema {
  return $schema === undefined ? schema : { type: 'object' }
}

function problems(form: JsonSchema, value: JsonValue): readonly unknown[] {
  const { $schema, ...schema } = form
  const ajv = new Ajv2020({ strict: false, logger: false, validateFormats: false })
  if ($schema !== undefined) return []
  return ajv.validate(schema, value)
    ? []
    : (ajv.errors ?? []).map(({ instancePath, message }) => [instancePath, message])
}

function hasOwnValue({ schema }: Troublesome): boolean {
  return 'value' in ((jsonSchemaOf(schema, 'a schema')['properties'] as object | undefined) ?? {})
}

/** As a model writes it that is held to the strict form: null for all that is absent. */
function filled(root: JsonSchema, schema: JsonSchema, value: JsonValue): JsonValue {
  const { $ref, anyOf, properties, items } = schema as Record<string, JsonSchema & string & JsonSchema[]>
  if (typeof $ref === 'string') return filled(root, target(root, $ref), value)
  if (anyOf !== undefined) {
    const made = anyOf.map((branch) => filled(root, branch, value))
    return (
      made.find(
        (each, index) => problems({ ...(anyOf[index] as JsonSchema), $defs: root['$defs'] }, each).length === 0,
      ) ?? value
    )
  }
  if (Array.isArray(value))
    return value.map((item: JsonValue) => (items === undefined ? item : filled(root, items, item)))
  if (typeof value !== 'object' || value === null || properties === undefined) return value
  const members = value as Record<string, JsonValue>
  const names = [...new Set([...Object.keys(members), ...Object.keys(properties)])]
  return Object.fromEntries(
    names.map((name) => {
      const inner = properties[name] as JsonSchema | undefined
      return [
        name,
        members[name] === undefined || inner === undefined
          ? (members[name] ?? null)
          : filled(root, inner, members[name]),
      ]
    }),
  )
}

function target(root: JsonSchema, reference: string): JsonSchema {
  return (root['$defs'] as Record<string, JsonSchema>)[reference.slice('#/$defs/'.length)] ?? {}
}

const STRICT_KEYWORDS = new Set(
  'type properties required additionalProperties items anyOf enum $ref $defs description pattern format minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems'.split(
    ' ',
  ),
)

/** Violations of OpenAI's documentation of strict schemas. */
function strictProblems(schema: JsonSchema, place = '#'): readonly string[] {
  const { properties, required, additionalProperties, items, anyOf, $defs, $ref, type } = schema
  const own = Object.keys(schema).filter((keyword) => !STRICT_KEYWORDS.has(keyword))
  const isTyped = type !== undefined || anyOf !== undefined || $ref !== undefined
  const isClosed =
    type !== 'object' ||
    (additionalProperties === false && Object.keys(properties ?? {}).join() === (required as string[]).join())
  const isAlone = $ref === undefined || Object.keys(schema).length === 1
  const inner = [
    ...Object.entries({ ...(properties as object | undefined), ...($defs as object | undefined) }),
    ...(items === undefined ? [] : [['items', items] as const]),
    ...((anyOf as readonly JsonSchema[] | undefined) ?? []).map((branch, index) => [String(index), branch] as const),
  ] as readonly (readonly [string, JsonSchema])[]
  return [
    ...own.map((keyword) => `${place}: ${keyword}`),
    ...(isTyped && isClosed && isAlone ? [] : [`${place}: ${JSON.stringify(schema)}`]),
    ...inner.flatMap(([step, each]) => strictProblems(each, `${place}/${step}`)),
  ]
}
