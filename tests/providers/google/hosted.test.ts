import { describe, expect, test } from 'vitest'
import { Harness } from 'thinharness'
import { gemini, webSearch } from 'thinharness/providers'
import type { AssistantPart } from '#contracts/entry.js'
import type { HostedTool, ToolDefinition } from '#core/model-session.js'
import type { JsonObject } from '#util/json.js'
import { providerCases } from '../../support/provider-cases.js'
import { assistant, bodyOf, callIdFor, contentsOf, event, folded, format, user } from './support.js'

const ASK = [user('Hi')]
const LOOK = {
  name: 'look',
  description: 'Looks.',
  parameters: { type: 'object', properties: { at: { type: 'string' } } },
}
const THIRD = format()

function hosted(kind: HostedTool['kind'], config: JsonObject = { maxUses: 8 }): ToolDefinition {
  return { name: kind, description: '', parameters: { type: 'object' }, hosted: { kind, config } }
}

describe('tools of Google', () => {
  test.each<[HostedTool['kind'], JsonObject, JsonObject]>([
    ['web_search', { maxUses: 8, userLocation: { city: 'Oslo' } }, { googleSearch: {} }],
    ['web_fetch', {}, { urlContext: {} }],
    ['code_execution', {}, { codeExecution: {} }],
    [
      'file_search',
      { storeIds: ['fileSearchStores/a'], maxResults: 3 },
      { fileSearch: { fileSearchStoreNames: ['fileSearchStores/a'], topK: 3 } },
    ],
    [
      'web_search',
      { providerOptions: { google: { timeRangeFilter: { startTime: 'a' } } } },
      { googleSearch: { timeRangeFilter: { startTime: 'a' } } },
    ],
  ])('%s with %j', (kind, config, wanted) => {
    const body = bodyOf(THIRD, ASK, { tools: [hosted(kind, config)] })
    expect(body['tools']).toEqual([wanted])
    expect(body['toolConfig']).toEqual(
      kind === 'code_execution' ? undefined : { includeServerSideToolInvocations: true },
    )
  })

  test('beside functions, the calls of both are shown and held to their schemas', () => {
    const body = bodyOf(THIRD, ASK, { tools: [hosted('web_search'), LOOK] })
    expect(body).toMatchObject({
      tools: [{ functionDeclarations: [{ name: 'look' }] }, { googleSearch: {} }],
      toolConfig: { functionCallingConfig: { mode: 'VALIDATED' }, includeServerSideToolInvocations: true },
    })
  })

  test.each<[string, string, ToolDefinition[], string]>([
    ['a kind that the API does not have', 'gemini-3-pro', [hosted('connector')], 'no hosted tool `connector`'],
    ['images of a model that makes none', 'gemini-3-pro', [hosted('image_generation')], '`google:gemini-3-pro`'],
    [
      'an option that the API does not have',
      'gemini-3-pro',
      [hosted('web_search', { allowedDomains: ['a.b'] })],
      '`allowedDomains`',
    ],
    [
      'functions beside them, in the second generation',
      'gemini-2.5-pro',
      [hosted('web_search'), LOOK],
      '`web_search` beside other tools',
    ],
  ])('%s is refused by name', (_name, id, tools, message) => {
    expect(() => bodyOf(format({ id }), ASK, { tools })).toThrow(message)
  })

  test('a model that makes images is asked for them', () => {
    const body = bodyOf(format({ id: 'gemini-3-pro-image' }), ASK, { tools: [hosted('image_generation')] })
    expect(body).toMatchObject({ generationConfig: { responseModalities: ['TEXT', 'IMAGE'] } })
    expect(body).not.toHaveProperty('tools')
  })

  test('a strict tool holds all calls to their schemas; examples are in the description', () => {
    const strict = { ...LOOK, strict: true, examples: [{ at: 'home' }] }
    const body = bodyOf(THIRD, ASK, { tools: [strict] })
    expect(body['toolConfig']).toEqual({ functionCallingConfig: { mode: 'VALIDATED' } })
    expect(JSON.stringify(body['tools'])).toContain('Examples of arguments:')
  })
})

function recorded(kind: string, stream: boolean): readonly AssistantPart[] {
  const found = providerCases('google-generate-content').find((each) => each.kind === kind && each.stream === stream)
  const { response } = found!
  if (response.sse === undefined) return format().decode(response.body, { callIdFor, onDelta: undefined }).parts
  const events = response.sse
    .split('\n')
    .flatMap((line) => (line.startsWith('data:') ? [JSON.parse(line.slice(5)) as unknown] : []))
  return folded(events).reply.parts
}

describe('what Google executed', () => {
  test('calls and results of a search, with the pages that the reply cites', () => {
    const parts = recorded('server-tools', true)
    const call = { type: 'hosted', callId: 'd6vd9r5q', name: 'web_search', source: { kind: 'web', name: 'web_search' } }
    expect(parts).toMatchObject([
      { ...call, arguments: '{"queries":["largest city in Mexico"]}' },
      { ...call, result: expect.stringContaining('worldatlas.com: https://') as string },
      { type: 'text' },
      { type: 'reasoning', text: '' },
    ])
  })

  test('programs and their output', () => {
    const parts = recorded('code-execution', false)
    const program = { type: 'hosted', name: 'code_execution', source: { kind: 'command', name: 'code_execution' } }
    expect(parts.slice(0, 2)).toMatchObject([
      { ...program, callId: 'h0mwtrhs', arguments: expect.stringContaining('"language":"PYTHON"') as string },
      { ...program, callId: 'h0mwtrhs', result: 'Current day in Utrecht: Tuesday, May 05, 2026\n' },
    ])
  })

  test('a search and pages that are named beside the parts come first, and are not sent back', () => {
    const parts = recorded('google-search', false)
    expect(parts[0]).toMatchObject({ type: 'hosted', name: 'web_search', callId: '', source: { kind: 'web' } })
    const [, content] = contentsOf(THIRD, [user('a'), assistant(parts)])
    expect(content?.['parts']).toHaveLength(1)
    expect(recorded('url-context', false)[0]).toMatchObject({
      type: 'hosted',
      name: 'web_fetch',
      source: { kind: 'web' },
    })
  })

  test('searches are counted as Google charges for them: by the query, in the second generation by the request', () => {
    const groundingMetadata = { webSearchQueries: ['a', '', 'b', 'a'] }
    const reply = { candidates: [{ content: { parts: [{ text: 'x' }] }, finishReason: 'STOP', groundingMetadata }] }
    const counted = (id: string): unknown => folded([reply], format({ id })).reply.usage.hostedCalls
    expect(counted('gemini-3-pro')).toEqual({ web_search: 2 })
    expect(counted('gemini-2.5-pro')).toEqual({ web_search: 1 })
  })

  test('a failed program is an error; a draft of an image is none of the reply', () => {
    const { reply } = folded([
      event(
        [
          { codeExecutionResult: { outcome: 'OUTCOME_FAILED', output: 'Traceback' } },
          { inlineData: { mimeType: 'image/png', data: 'AAAA' }, thought: true },
          { inlineData: { mimeType: 'image/png', data: 'BBBB' }, thoughtSignature: 's' },
        ],
        'STOP',
      ),
    ])
    expect(reply.parts).toMatchObject([
      { type: 'hosted', isError: true, result: 'Traceback' },
      { type: 'opaque' },
      { type: 'image', data: 'BBBB', mediaType: 'image/png' },
    ])
    expect(JSON.stringify(reply.parts[2]?.native)).not.toContain('BBBB')
    const [, content] = contentsOf(THIRD, [user('a'), assistant(reply.parts)])
    expect(content?.['parts']).toMatchObject([
      {},
      { inlineData: { data: 'AAAA' }, thought: true },
      { inlineData: { mimeType: 'image/png', data: 'BBBB' }, thoughtSignature: 's' },
    ])
  })
})

describe('citations', () => {
  test('a passage is found by its bytes, or by its words if they are elsewhere; one source may have many', () => {
    const groundingMetadata = {
      groundingChunks: [{ web: { uri: 'https://a.example', title: 'A' } }, { web: { uri: 'https://b.example' } }],
      groundingSupports: [
        { segment: { startIndex: 0, endIndex: 9, text: 'Größe 1' }, groundingChunkIndices: [0, 1] },
        { segment: { startIndex: 900, endIndex: 905, text: 'second.' }, groundingChunkIndices: [1] },
      ],
    }
    const reply = { candidates: [{ content: { parts: [{ text: 'Größe 1. The ' }] } }] }
    const last = {
      candidates: [{ content: { parts: [{ text: 'second.' }] }, finishReason: 'STOP', groundingMetadata }],
    }
    const [text] = folded([reply, last]).reply.parts
    expect(text).toMatchObject({
      annotations: [
        { url: 'https://a.example', title: 'A', from: 0, to: 7 },
        { url: 'https://b.example', from: 0, to: 7 },
        { url: 'https://b.example', from: 13, to: 20 },
      ],
    })
  })

  test('recorded passages are exactly the words that Google names', () => {
    for (const stream of [true, false]) {
      const parts = recorded('google-search', stream)
      const texts = parts.filter((part) => part.type === 'text')
      const cited = texts.flatMap((part) =>
        (part.annotations ?? []).map(({ from, to, url }) => [part.text.slice(from, to), url]),
      )
      expect(cited.length).toBeGreaterThan(2)
      for (const [words, url] of cited) {
        expect(words).toMatch(/\S/)
        expect(url).toMatch(/^https:/)
      }
    }
  })

  test('a file has its store and its words, and a cited text goes back without its sources', () => {
    const parts = recorded('file-search', true)
    const text = parts.find((part) => part.type === 'text')
    expect(text?.annotations).toMatchObject(
      [{ fileId: /^fileSearchStores\//, quote: /^Paris is the capital/, from: 0, to: 35 }].map((each) => ({
        ...each,
        fileId: expect.stringMatching(each.fileId) as string,
        quote: expect.stringMatching(each.quote) as string,
      })),
    )
    const [, content] = contentsOf(THIRD, [user('a'), assistant([text!])])
    expect(content?.['parts']).toEqual([{ text: text!.text }])
  })
})

test('a run with a search: the answer has sources, and the search is paid for', async () => {
  const groundingMetadata = {
    webSearchQueries: ['high tide'],
    groundingChunks: [{ web: { uri: 'https://a.example', title: 'A' } }],
    groundingSupports: [{ segment: { startIndex: 0, endIndex: 8, text: 'At noon.' }, groundingChunkIndices: [0] }],
  }
  const usageMetadata = { promptTokenCount: 10, candidatesTokenCount: 3, totalTokenCount: 13 }
  const bodies: unknown[] = []
  const fetch: typeof globalThis.fetch = async (input, init) => {
    bodies.push(await new Request(input, init).json())
    const candidate = { content: { parts: [{ text: 'At noon.' }] }, finishReason: 'STOP', groundingMetadata }
    return Response.json({ candidates: [candidate], usageMetadata })
  }
  const model = gemini('gemini-3-flash-preview', { apiKey: 'k', fetch })
  const harness = new Harness({ model, builtinTools: [], tools: [webSearch()], limits: { costUsd: 5 } })
  const { text, sources, usage } = await harness.run('When is high tide?')
  expect(text).toBe('At noon.')
  expect(sources).toMatchObject([{ url: 'https://a.example', title: 'A', from: 0, to: 8 }])
  expect(usage.hostedCalls).toEqual({ web_search: 1 })
  expect(usage.costUsd).toBeGreaterThan(0.03)
  expect(bodies).toMatchObject([{ tools: [{ googleSearch: {} }] }])
})
