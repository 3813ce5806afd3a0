import { Ajv2020 } from 'ajv/dist/2020.js'
import { createOpenAI } from '@ai-sdk/openai'
import { describe, expect, test, vi } from 'vitest'
import { callTool, defineTool, Harness } from 'thinharness'
import type { JsonSchema, Model } from 'thinharness'
import { anthropic, fromAiSdk, openai, openaiChat } from 'thinharness/providers'
import { scriptedProvider } from 'thinharness/testing'
import type { ProviderApi } from 'thinharness/testing'
import { resolveReference, schemasIn } from '#schema/subschemas.js'
import type { Hostile } from '../support/hostile/hostile.js'
import { HOSTILE } from '../support/hostile/schemas.js'
import { expectValidRequest } from '../support/request-schemas.js'
import type { RequestApi } from '../support/request-schemas.js'

interface Wire {
  readonly name: string
  readonly api: ProviderApi
  readonly make: (baseURL: string) => Model
  readonly requests: readonly RequestApi[]
  /** Keys are replaced that the API rejects. */
  readonly areKeysLimited: boolean
}

const KEY = { apiKey: 'any', maxRetries: 0 } as const
const WIRES: readonly Wire[] = [
  {
    name: 'responses',
    api: 'responses',
    make: (baseUrl) => openai('gpt-5.5', { ...KEY, baseUrl }),
    requests: ['openai-responses', 'openai-responses-sdk'],
    areKeysLimited: false,
  },
  {
    name: 'chat',
    api: 'chat',
    make: (baseUrl) => openaiChat('gpt-4.1', { ...KEY, baseUrl }),
    requests: ['openai-chat', 'openai-chat-sdk'],
    areKeysLimited: false,
  },
  {
    name: 'messages',
    api: 'messages',
    make: (baseUrl) => anthropic('claude-sonnet-5', { ...KEY, baseUrl }),
    requests: ['anthropic-messages'],
    areKeysLimited: true,
  },
  {
    name: 'AI SDK, chat',
    api: 'chat',
    make: (baseURL) => fromAiSdk(createOpenAI({ apiKey: 'any', baseURL }).chat('gpt-4.1'), { maxRetries: 0 }),
    requests: ['openai-chat'],
    areKeysLimited: false,
  },
]

/** Runs a tool of this schema once, and returns the sent schema and the arguments that reached the handler. */
async function offered({ schema, fits }: Hostile, wire: Wire) {
  const got: unknown[] = []
  const tool = defineTool({
    name: 'act',
    description: 'Acts.',
    parameters: structuredClone(schema),
    handler: (args) => {
      got.push(args)
      return 'ok'
    },
  })
  await using provider = await scriptedProvider()
  provider.calls('act', fits as never).says('Done.')
  const model = wire.make(provider.url[wire.api])
  const result = await new Harness({ model, tools: [tool], builtinTools: [] }).run('Go.')
  await model.close?.()
  const [body] = provider.requests.map((request) => request.body)
  const { tools } = body as { tools: readonly Record<string, unknown>[] }
  const [{ function: declared, ...rest } = {}] = tools
  const members = { ...rest, ...(declared as object | undefined) } as Record<string, JsonSchema | undefined>
  return { result, got, body, sent: members['parameters'] ?? members['input_schema'] ?? {} }
}

test('there are at least 60 hostile schemas', () => {
  expect(new Set(HOSTILE.map(({ name }) => name)).size).toBe(HOSTILE.length)
  expect(HOSTILE.length).toBeGreaterThanOrEqual(60)
})

describe.each(WIRES)('hostile schemas to $name', (wire) => {
  test.each(HOSTILE)('PR-33 is offered, and its arguments reach the tool: $name', async (each) => {
    const onWarning = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
    const { result, got, body, sent } = await offered(each, wire)
    onWarning.mockRestore()

    expect(result.text).toBe('Done.')
    expect(got).toEqual([each.fits])
    for (const api of wire.requests) expectValidRequest(api, body)
    expect(JSON.stringify(body).isWellFormed()).toBe(true)
    expect(sent).toMatchObject({ type: 'object', properties: expect.any(Object) as unknown })
    for (const keyword of ['anyOf', 'oneOf', 'allOf', 'not', 'enum', '$ref']) expect(sent).not.toHaveProperty([keyword])
    for (const { $ref, properties } of schemasIn(sent)) {
      if (typeof $ref === 'string') expect(resolveReference(sent, $ref), $ref).toBeDefined()
      else expect($ref).toBeUndefined()
      if (wire.areKeysLimited)
        for (const key of Object.keys(properties ?? {})) expect(key).toMatch(/^[a-zA-Z0-9_.-]{1,64}$/)
    }
    const ajv = new Ajv2020({
      strict: false,
      logger: false,
      validateFormats: false,
      ownProperties: true,
      multipleOfPrecision: 6,
    })
    const check = ajv.compile(sent)
    expect([check(each.fits), check.errors]).toEqual([true, null])
  })
})

test.each(HOSTILE)(
  'PR-33 arguments are checked by the original schema: $name',
  async ({ schema, fits, misfits, at }) => {
    const parameters = structuredClone(schema)
    const tool = defineTool({ name: 'act', description: 'Acts.', parameters, handler: () => 'ok' })
    expect(await callTool(tool, fits as never)).toMatchObject({ ok: true })
    if (misfits === null) return
    const refused = await callTool(tool, misfits as never)
    expect(refused).toMatchObject({ ok: false })
    expect(JSON.stringify(refused)).toContain(at)
  },
)
