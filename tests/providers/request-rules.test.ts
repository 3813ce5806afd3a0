import { createOpenAI } from '@ai-sdk/openai'
import OpenAI from 'openai'
import { describe, expect, test, vi } from 'vitest'
import { callTool, defineTool, Harness } from 'thinharness'
import type { JsonSchema, Model, TranscriptEntry } from 'thinharness'
import { anthropic, fromAiSdk, openai, openaiChat, openaiCompatible, openrouter } from 'thinharness/providers'
import type { ProviderOptions } from 'thinharness/providers'
import type { JsonObject } from '#util/json.js'
import { UNREPORTED_USAGE } from '#contracts/entry.js'

type Fetch = typeof globalThis.fetch
type Options = Pick<ProviderOptions, 'extraBody'>

const RESPONSES = { id: 'resp_1', status: 'completed', output: [text('Done.')] }
const CHAT = { choices: [{ index: 0, message: { role: 'assistant', content: 'Done.' }, finish_reason: 'stop' }] }
const MESSAGES = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  content: [{ type: 'text', text: 'Done.' }],
  stop_reason: 'end_turn',
}

function text(answer: string): JsonObject {
  const content = [{ type: 'output_text', text: answer, annotations: [] }]
  return { type: 'message', id: 'm1', role: 'assistant', status: 'completed', content }
}

interface Case {
  readonly name: string
  readonly make: (fetch: Fetch, options?: Options) => Model
  readonly reply: JsonObject
  /** A function in the form of the API. */
  readonly declare: (name: string, description: string) => JsonObject
}

const NO_FIELDS = { type: 'object', properties: {} } as const

function chatFunction(name: string, description: string): JsonObject {
  return { type: 'function', function: { name, description, parameters: NO_FIELDS } }
}

const KEY = { apiKey: 'any', maxRetries: 0 } as const
const BASE_URL = 'http://any.invalid/v1'
const CASES: readonly Case[] = [
  {
    name: 'openai',
    make: (fetch, options) => openai('gpt-5.5', { ...KEY, fetch, ...options }),
    reply: RESPONSES,
    declare: (name, description) => ({ type: 'function', name, description, parameters: NO_FIELDS, strict: false }),
  },
  {
    name: 'openaiChat',
    make: (fetch, options) => openaiChat('gpt-5.5', { ...KEY, fetch, ...options }),
    reply: CHAT,
    declare: chatFunction,
  },
  {
    name: 'openrouter',
    make: (fetch, options) => openrouter('x/y', { ...KEY, fetch, ...options }),
    reply: CHAT,
    declare: chatFunction,
  },
  {
    name: 'openaiCompatible',
    make: (fetch, options) => openaiCompatible('m', { ...KEY, fetch, baseUrl: BASE_URL, ...options }),
    reply: CHAT,
    declare: chatFunction,
  },
  {
    name: 'anthropic',
    make: (fetch, options) => anthropic('claude-sonnet-5', { ...KEY, fetch, ...options }),
    reply: MESSAGES,
    declare: (name, description) => ({ name, description, input_schema: NO_FIELDS }),
  },
]

/** Models whose bodies are not serialized by the library. */
const OTHERS: readonly Omit<Case, 'declare'>[] = [
  {
    name: 'openai with an official client',
    make: (fetch) => openai('gpt-5.5', { client: new OpenAI({ apiKey: 'any', fetch }), maxRetries: 0 }),
    reply: RESPONSES,
  },
  {
    name: 'fromAiSdk',
    make: (fetch) => fromAiSdk(createOpenAI({ apiKey: 'any', fetch }).chat('gpt-4.1'), { maxRetries: 0 }),
    reply: { id: 'c1', created: 1, model: 'gpt-4.1', ...CHAT },
  },
]

/** A `fetch` that answers with `reply`, and the bodies that it received. */
function recorder(reply: JsonObject): { readonly fetch: Fetch; readonly bodies: string[] } {
  const bodies: string[] = []
  const fetch: Fetch = async (url, init) => {
    bodies.push(await new Request(url, init).text())
    return Response.json(reply)
  }
  return { fetch, bodies }
}

const LOOK = {
  name: 'look',
  description: 'Looks.',
  parameters: { type: 'object', properties: { at: { type: 'string' } } },
  handler: () => 'seen',
}
const TOOL = defineTool(LOOK)

describe('tools of a caller’s own fields', () => {
  function toolNames(body = ''): (string | undefined)[] {
    const { tools } = JSON.parse(body) as { tools: { name?: string; type: string; function?: { name: string } }[] }
    return tools.map(({ name, function: declared }) => name ?? declared?.name)
  }

  test.each(CASES)(
    'PR-26 tools of `extraBody` and `providerOptions` are added to those of the run ($name)',
    async ({ make, reply, declare }) => {
      const { fetch, bodies } = recorder(reply)
      const model = make(fetch, { extraBody: { tools: [declare('search', 'Searches.')] } })
      const settings = { providerOptions: { [model.provider]: { tools: [declare('other', 'Does it.')] } } }

      await new Harness({ model, tools: [TOOL], builtinTools: [], settings }).run('Go.')

      expect(toolNames(bodies[0])).toEqual(['look', 'search', 'other'])
    },
  )

  test.each(CASES)(
    'PR-26 a function of the same name replaces that of the run ($name)',
    async ({ make, reply, declare }) => {
      const { fetch, bodies } = recorder(reply)
      const tools = [declare('search', 'Searches.'), declare('look', 'Looks twice.')]

      await new Harness({ model: make(fetch, { extraBody: { tools } }), tools: [TOOL], builtinTools: [] }).run('Go.')

      expect(toolNames(bodies[0])).toEqual(['look', 'search'])
      expect(bodies[0]).toContain('Looks twice.')
    },
  )

  test('PR-26 tools of the provider without a name are added', async () => {
    const { fetch, bodies } = recorder(RESPONSES)
    const model = openai('gpt-5.5', { ...KEY, fetch, extraBody: { tools: [{ type: 'web_search' }] } })

    await new Harness({ model, tools: [TOOL], builtinTools: [] }).run('Go.')

    expect(JSON.parse(bodies[0] ?? '')).toMatchObject({ tools: [{ name: 'look' }, { type: 'web_search' }] })
  })

  test.each(CASES)('PR-26 `tools` that are not a list are rejected ($name)', async ({ make, reply }) => {
    const { fetch, bodies } = recorder(reply)
    const harness = new Harness({ model: make(fetch, { extraBody: { tools: null } }), tools: [TOOL], builtinTools: [] })

    await expect(harness.run('Go.')).rejects.toMatchObject({ code: 'invalid_options' })
    expect(bodies).toEqual([])
  })
})

describe('schemas of tools that providers reject', () => {
  const draft4 = { type: 'number', minimum: 0, exclusiveMinimum: true } as const
  const parameters: JsonSchema = {
    type: 'object',
    properties: {
      list: { type: 'array' },
      maybe: { type: ['array', 'null'], description: 'Maybe.' },
      nested: { type: 'object', properties: { deep: { type: 'array', items: { type: 'array' } } } },
      pair: { type: 'array', prefixItems: [{ type: 'string' }] },
      gone: { $ref: '#/$defs/gone', description: 'Gone.' },
      far: { anyOf: [{ $ref: 'https://schemas.invalid/x.json' }, { type: 'null' }] },
      kept: { $ref: '#/$defs/kept' },
      amount: draft4,
    },
    $defs: { kept: { type: 'array' } },
  }

  test.each([...CASES, ...OTHERS])(
    'PR-33 lists without `items`, references that lead nowhere and limits of draft 4 are repaired ($name)',
    async ({ make, reply }) => {
      const { fetch, bodies } = recorder(reply)
      const tool = defineTool({ ...LOOK, parameters: structuredClone(parameters) })
      const warnings: string[] = []
      const onWarning = vi.spyOn(process, 'emitWarning').mockImplementation((text) => void warnings.push(String(text)))

      const harness = new Harness({ model: make(fetch), tools: [tool], builtinTools: [] })
      await harness.run('Go.')
      await harness.run('Go.')
      onWarning.mockRestore()

      const { tools } = JSON.parse(bodies[0] ?? '') as { tools: Record<string, unknown>[] }
      const [{ function: declared, ...rest } = {}] = tools
      const sent = { ...rest, ...(declared as object | undefined) } as Record<string, unknown>
      expect(sent['parameters'] ?? sent['input_schema']).toMatchObject({
        properties: {
          list: { type: 'array', items: {} },
          maybe: { type: ['array', 'null'], items: {} },
          nested: { properties: { deep: { items: { type: 'array', items: {} } } } },
          pair: { prefixItems: [{ type: 'string' }] },
          gone: { description: 'Gone.' },
          far: { anyOf: [{}, { type: 'null' }] },
          kept: { $ref: '#/$defs/kept' },
          amount: { exclusiveMinimum: 0 },
        },
        $defs: { kept: { type: 'array', items: {} } },
      })
      expect(bodies[0]).not.toMatch(/"\$ref":"(?!#\/\$defs\/kept)|exclusiveMinimum":true/)
      expect(warnings).toEqual([
        expect.stringMatching(/`look`.*`#\/\$defs\/gone`/),
        expect.stringMatching(/`look`.*`https:/),
      ])
    },
  )

  test('PR-33 keywords that are left out because JSON Schema does not allow their values are named in one warning', async () => {
    const properties = { any: { type: 'any', $id: 'x' }, few: { enum: [], pattern: '(?<x>a)', required: true } }
    const tool = defineTool({ ...LOOK, parameters: { type: 'object', properties } as never })
    const warnings: string[] = []
    const onWarning = vi.spyOn(process, 'emitWarning').mockImplementation((text) => void warnings.push(String(text)))
    const { fetch } = recorder(RESPONSES)

    const harness = new Harness({ model: openai('gpt-5.5', { ...KEY, fetch }), tools: [tool], builtinTools: [] })
    await harness.run('Go.')
    await harness.run('Go.')
    onWarning.mockRestore()

    expect(warnings).toEqual([
      'The schema of tool `look` has keywords whose values JSON Schema does not allow: providers are not sent `type`, `enum`, `required`.',
    ])
  })

  test('PR-33 arguments are validated by the original schema', async () => {
    const strict = defineTool({ ...LOOK, parameters: { type: 'object', properties: { amount: draft4 } } })
    expect(await callTool(strict, { amount: 1 })).toMatchObject({ ok: true })
    expect(await callTool(strict, { amount: 0 })).toMatchObject({ ok: false })
  })
})

describe('half of a surrogate pair', () => {
  const HALF = '\ud83d'
  const STAMP = { at: '2026-01-01T00:00:00.000Z' }

  function history(provider: string): TranscriptEntry[] {
    return [
      { role: 'user', id: 'e1', ...STAMP, content: [{ type: 'text', text: `Look ${HALF}` }] },
      {
        role: 'assistant',
        id: 'e2',
        ...STAMP,
        provider,
        model: 'm',
        finishReason: 'tool_calls',
        usage: UNREPORTED_USAGE,
        parts: [
          { type: 'text', text: `Looking ${HALF}` },
          { type: 'tool_call', callId: 'call_1', name: 'look', arguments: `{"at":"\\ud83d ${HALF} \\ud83d\\ude00"}` },
        ],
      },
      { role: 'tool', id: 'e3', ...STAMP, callId: 'call_1', name: 'look', content: `seen ${HALF}`, isError: false },
    ]
  }

  /** The strings of a JSON value, keys included; strings that are JSON themselves are read too. */
  function stringsIn(value: unknown): string[] {
    if (typeof value === 'string') return [value, ...(value.startsWith('{') ? stringsIn(JSON.parse(value)) : [])]
    if (typeof value !== 'object' || value === null) return []
    return Object.entries(value).flatMap(([key, member]) => [key, ...stringsIn(member)])
  }

  test.each([...CASES, ...OTHERS])(
    'PR-27 strings are sent well-formed, and whole characters unchanged ($name)',
    async ({ make, reply }) => {
      const { fetch, bodies } = recorder(reply)
      const tool = defineTool({ ...LOOK, description: `Looks ${HALF}.` })
      const options = { tools: [tool], builtinTools: [], instructions: `Be brief ${HALF}.` } as const
      const model = make(fetch)
      const harness = new Harness({ model, ...options })

      const { resumeState } = await harness.run(`Go ${HALF} 😀 \\ud83d`, { history: history(model.provider) })

      const strings = stringsIn(JSON.parse(bodies[0] ?? ''))
      expect(strings.filter((each) => !each.isWellFormed())).toEqual([])
      const sent = strings.join('\n')
      for (const part of ['Be brief', 'Looks', 'Look', 'Looking', 'seen', 'Go'])
        expect(sent).toContain(`${part} \ufffd`)
      expect(sent, 'a pair, and the text of an escape').toContain('Go \ufffd 😀 \\ud83d')
      expect(strings).toContain('\ufffd \ufffd 😀')
      expect(JSON.stringify(resumeState), 'the transcript is unchanged').toContain('Look \\ud83d')
    },
  )
})
