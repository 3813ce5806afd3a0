import { NO_TOKENS } from '#contracts/entry.js'
import { describe, expect, test } from 'vitest'
import { Harness, memoryLog } from 'thinharness'
import type { AssistantPart, Model, ModelTurn, ToolSpec, TranscriptEntry } from 'thinharness'
import { codeExecution, connector, webFetch, webSearch } from 'thinharness/providers'
import { categoryOf, policy } from 'thinharness/policy'
import { project, toAgUi, toUIMessageStream } from 'thinharness/ui'
import { responsesProjection } from '#adapters/ui/responses/responses-projection.js'
import type { RequestConstants } from 'thinharness'
import { sourcedEntries } from '#run/provenance/hosted-sources.js'
import { hostedBound, hostedCost } from '#run/money/hosted-cost.js'

const USAGE = { ...NO_TOKENS, inputTokens: 100, outputTokens: 10 }

interface Scripted {
  readonly model: Model
  readonly asked: RequestConstants[]
}

/** A model that answers with these replies, in order. */
function scripted(replies: readonly (readonly AssistantPart[])[], hostedCalls?: Record<string, number>): Scripted {
  const asked: RequestConstants[] = []
  let place = 0
  const turn = (_view: readonly TranscriptEntry[], constants: RequestConstants): Promise<ModelTurn> => {
    asked.push(constants)
    const parts = replies[place++] ?? [{ type: 'text', text: 'Done.' }]
    const finishReason = parts.some(({ type }) => type === 'tool_call') ? 'tool_calls' : 'stop'
    const usage = hostedCalls === undefined ? USAGE : { ...USAGE, hostedCalls }
    return Promise.resolve({
      entry: { role: 'assistant', parts, provider: 'anthropic', model: 'claude-sonnet-5', finishReason, usage },
    })
  }
  return {
    asked,
    model: { provider: 'anthropic', id: 'claude-sonnet-5', capabilities: {}, openSession: () => ({ turn }) },
  }
}

const SEARCHED: readonly AssistantPart[] = [
  {
    type: 'hosted',
    callId: 's1',
    name: 'web_search',
    source: { kind: 'web', name: 'web_search' },
    arguments: '{"query":"tides"}',
  },
  {
    type: 'hosted',
    callId: 's1',
    name: 'web_search',
    source: { kind: 'web', name: 'web_search' },
    result: 'Tides: https://a.example',
  },
  { type: 'text', text: 'High ' },
  { type: 'text', text: 'tide.', annotations: [{ url: 'https://a.example', title: 'Tides', from: 0, to: 4 }] },
  { type: 'image', data: 'iVBORw0KGgo=', mediaType: 'image/png' },
]

async function offered(
  tools: readonly ToolSpec[],
  use: readonly ReturnType<typeof policy>[],
): Promise<{ names: string[]; warnings: string[] }> {
  const { model, asked } = scripted([])
  const stream = new Harness({ model, tools: [...tools], use: [...use] }).stream('Hello')
  const warnings: string[] = []
  for await (const event of stream) if (event.kind === 'warning') warnings.push(event.message)
  return { names: (asked[0]?.tools ?? []).map(({ name }) => name), warnings }
}

describe('policies decide when a hosted tool is offered', () => {
  const tools = [webSearch({ allowedDomains: ['example.org'] }), webFetch()]

  test('without one, and if it allows them, they are offered', async () => {
    expect(await offered(tools, [])).toEqual({ names: ['web_search', 'web_fetch'], warnings: [] })
    const { names } = await offered(tools, [policy([{ decision: 'allow', tool: 'web_*' }], { default: 'deny' })])
    expect(names).toEqual(['web_search', 'web_fetch'])
  })

  test('a tool that is denied, or about whose calls a person would be asked, is left out with a warning', async () => {
    const { names, warnings } = await offered(tools, [
      policy([
        { decision: 'deny', tool: 'web_search' },
        { decision: 'ask', tool: 'web_fetch' },
      ]),
    ])

    expect(names).toEqual([])
    expect(warnings).toEqual([
      expect.stringContaining('The hosted tool `web_search` is left out, since a policy denies it'),
      expect.stringContaining('The hosted tool `web_fetch` is left out, since nobody can be asked about its calls'),
    ])
  })

  test('its arguments are its options, and it is asked about once in a run', async () => {
    const seen: unknown[] = []
    const look = (call: { readonly args: unknown }): null => {
      seen.push(call.args)
      return null
    }
    const looks = { name: 'looks', policy: look }
    const { model } = scripted([[{ type: 'tool_call', callId: 'c1', name: 'web_search', arguments: '{"query":"x"}' }]])
    await new Harness({ model, tools: [webSearch({ maxUses: 2 })], use: [looks] }).run('Hello')

    expect(seen[0]).toEqual({ maxUses: 2 })
    expect(seen.filter((args) => JSON.stringify(args) === '{"maxUses":2}')).toHaveLength(1)
  })

  test('a tool that a person must approve is left out', async () => {
    const { names } = await offered([{ ...webSearch(), requiresApproval: true }], [])

    expect(names).toEqual([])
  })
})

test('a call of a hosted tool like other tools is a failed result, and the run goes on', async () => {
  const { model } = scripted([[{ type: 'tool_call', callId: 'c1', name: 'web_search', arguments: '{"query":"x"}' }]])
  const result = await new Harness({ model, tools: [webSearch()] }).run('Hello')

  expect(result.text).toBe('Done.')
  expect(result.toolCallRecords[0]?.output).toContain('the provider of the model executes it within a reply')
})

describe('what a provider executed', () => {
  test('survives a stored state and a log, and is cited by the result', async () => {
    const log = memoryLog()
    const { model } = scripted([SEARCHED, SEARCHED])
    const harness = new Harness({ model, tools: [webSearch()], log })
    const first = await harness.run('Hello', { runId: 'r1' })
    const second = await harness.run('Again', { history: JSON.parse(JSON.stringify(first.resumeState)) as never })

    expect(first.text).toBe('High tide.')
    expect(first.sources).toEqual([{ url: 'https://a.example', title: 'Tides', partId: 'e2.3', from: 0, to: 4 }])
    expect(second.sources).toEqual([{ url: 'https://a.example', title: 'Tides', partId: 'e4.3', from: 0, to: 4 }])
    const reply = second.transcript[1]
    expect(reply?.role === 'assistant' && reply.parts).toEqual(SEARCHED)
  })

  test('has sources for provenance: its results, and the passages that cite pages', () => {
    const entry: TranscriptEntry = {
      role: 'assistant',
      id: 'e1',
      at: '2026-01-01T00:00:00.000Z',
      parts: SEARCHED,
      provider: 'anthropic',
      model: 'm',
      finishReason: 'stop',
      usage: USAGE,
    }

    expect(sourcedEntries([entry]).map(({ source, content }) => [source.name, content])).toEqual([
      ['web_search', ''],
      ['web_search', 'Tides: https://a.example'],
      ['https://a.example', '\ntide'],
    ])
    expect(sourcedEntries([entry])[1]).toBe(sourcedEntries([entry])[1])
  })

  test('reaches pages of the AI SDK as sources, calls of the provider, and files', async () => {
    const { model } = scripted([SEARCHED])
    const stream = new Harness({ model, tools: [webSearch()] }).stream('Hello')
    const chunks: { readonly type: string }[] = []
    for await (const chunk of toUIMessageStream(stream)) chunks.push(chunk)

    expect(chunks.filter(({ type }) => /source|file|^tool/.test(type))).toMatchObject([
      { type: 'source-url', url: 'https://a.example', title: 'Tides' },
      {
        type: 'tool-input-available',
        toolCallId: 's1',
        toolName: 'web_search',
        input: { query: 'tides' },
        providerExecuted: true,
      },
      { type: 'tool-output-available', toolCallId: 's1', output: 'Tides: https://a.example', providerExecuted: true },
      { type: 'file', mediaType: 'image/png' },
    ])
  })
})

test('rules know what a hosted tool does by its category', () => {
  const tools = [webSearch(), webFetch(), codeExecution(), connector({ name: 'w', url: 'https://w.example' })]

  expect(tools.map((spec) => categoryOf(spec))).toEqual(['network', 'network', 'execute', 'mcp'])
})

describe('other protocols of pages', () => {
  const events = (): ReturnType<Harness['stream']> =>
    new Harness({ model: scripted([SEARCHED]).model, tools: [webSearch()] }).stream('Hello')

  test('AG-UI has sources, calls of the provider and images as events of its own kind', async () => {
    const custom: { readonly name: string; readonly value: unknown }[] = []
    for await (const event of toAgUi(events()))
      if (event.type === 'CUSTOM' && /sources|hosted_call|image/.test(event.name)) custom.push(event)

    expect(custom).toMatchObject([
      { name: 'thinharness.sources', value: { sources: [{ url: 'https://a.example', from: 5, to: 9 }] } },
      { name: 'thinharness.hosted_call', value: { name: 'web_search', arguments: '{"query":"tides"}' } },
      { name: 'thinharness.hosted_call', value: { name: 'web_search', result: 'Tides: https://a.example' } },
      { name: 'thinharness.image', value: { mediaType: 'image/png' } },
    ])
  })

  test('Open Responses has annotations, while a text arrives and in the whole response', async () => {
    const sent: { readonly type: string }[] = []
    for await (const event of project(events(), responsesProjection())) sent.push(event)
    const citation = { type: 'url_citation', url: 'https://a.example', title: 'Tides', start_index: 5, end_index: 9 }

    expect(sent.find(({ type }) => type === 'response.output_text.annotation.added')).toMatchObject({
      annotation: citation,
    })
    expect(sent.at(-1)).toMatchObject({
      type: 'response.completed',
      response: { output: [{ type: 'message', content: [{ text: 'High tide.', annotations: [citation] }] }] },
    })
  })
})

describe('the price of hosted calls', () => {
  const price = { inputPerMillion: 3, outputPerMillion: 15 }
  const prices = { models: { 'claude-sonnet-5': price } }

  test('is in the cost of a reply and counted in the usage', async () => {
    const { model } = scripted([], { web_search: 2 })
    const { usage } = await new Harness({ model, prices }).run('Hello')

    expect(usage.hostedCalls).toEqual({ web_search: 2 })
    expect(usage.costUsd).toBeCloseTo(0.02 + (100 * 3 + 10 * 15) / 1e6, 9)
  })

  test('is that of the host, if the host gives one', () => {
    expect(hostedCost({ ...price, hostedPerCall: { web_search: 0.5 } }, 'anthropic', { web_search: 2 })).toBe(1_000_000)
    expect(hostedCost(price, 'openai', { file_search: 2, connector: 5 })).toBe(5000)
  })

  test('is reserved for as many calls as a tool allows', async () => {
    const limits = { costUsd: 0.25 }
    const run = (maxUses: number): Promise<unknown> =>
      new Harness({
        model: scripted([]).model,
        prices,
        limits,
        tools: [webSearch({ maxUses })],
        settings: { maxOutputTokens: 2048 },
      }).run('x')

    await expect(run(1)).resolves.toMatchObject({ status: 'completed' })
    await expect(run(24)).rejects.toMatchObject({ code: 'limit_reached' })
  })

  test('is reserved at the dearest of tools that share a bound', () => {
    const tools = [webSearch({ maxUses: 2 }), { ...webFetch({ maxUses: 3, maxContentTokens: 10 }), name: 'x' }]

    expect(hostedBound(tools, { provider: 'anthropic', price })).toEqual({ cost: 20_000, tokens: 2 * 4000 + 30 })
    expect(hostedBound(tools, { provider: 'openai', price })).toEqual({ cost: 50_000, tokens: 2 * 4000 + 30 })
  })
})
