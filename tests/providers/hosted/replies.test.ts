import { expect, test } from 'vitest'
import { Harness } from 'thinharness'
import type { Model, TranscriptEntry } from 'thinharness'
import { anthropic, openai, openrouter, webSearch } from 'thinharness/providers'
import { byteOffset, characterOffset } from '#providers/hosted/citations.js'
import { isObject } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import { answerOf, atRandom, fetchOf, providerCases } from '../../support/provider-cases.js'
import type { ProviderCase } from '../../support/provider-cases.js'

type Make = (fetch: typeof globalThis.fetch) => Model
const claude: Make = (fetch) => anthropic('claude-sonnet-5', { apiKey: 'key', fetch, promptCache: false })
const gpt: Make = (fetch) => openai('gpt-5.5', { apiKey: 'key', fetch })
const router: Make = (fetch) => openrouter('deepseek/deepseek-chat', { apiKey: 'key', fetch, promptCache: false })

function recorded(api: string, file: string): ProviderCase {
  const found = providerCases(api).find((each) => each.file === `${api}/${file}.json`)
  if (found === undefined) throw new Error(`There is no case ${api}/${file}.`)
  return found
}

const SEARCH = recorded('anthropic-messages', 'stream-server-block-web-search-01')
const FETCH = recorded('anthropic-messages', 'json-server-block-web-fetch-01')
const MCP = recorded('anthropic-messages', 'json-server-block-mcp-01')
const CODE = recorded('anthropic-messages', 'stream-server-block-code-execution-01')
const FILES = recorded('openai-responses', 'stream-hosted-file-search-01')
const ANNOTATED = recorded('openrouter-chat', 'stream-annotations-01')

async function entryOf(make: Make, each: ProviderCase): Promise<Extract<TranscriptEntry, { role: 'assistant' }>> {
  const { turn, error } = await answerOf(make(fetchOf(each, atRandom(7))), each)
  if (turn === undefined) throw new Error('The case has no reply.', { cause: error })
  return { ...turn.entry, id: 'e2', at: '2026-01-01T00:00:00.000Z' }
}

/** The conversation part of a request with this reply in it, sent by a model. */
async function sentBack(make: Make, entry: TranscriptEntry): Promise<readonly JsonObject[]> {
  let sent: JsonObject = {}
  const answer = async (_url: unknown, init?: RequestInit): Promise<Response> => {
    sent = (await new Response(init?.body).json()) as JsonObject
    return Response.json({ error: { type: 'invalid_request_error', message: 'enough' } }, { status: 400 })
  }
  const at = '2026-01-01T00:00:00.000Z'
  const ask = (id: string): TranscriptEntry => ({ role: 'user', id, at, content: [{ type: 'text', text: 'Go on.' }] })
  const constants = { instructions: '', tools: [], structuredOutput: null, settings: {} }
  const options = { generation: 0, signal: new AbortController().signal }
  const session = make(answer).openSession()
  await session.turn([ask('e1'), entry, ask('e3')], constants, options).catch(() => undefined)
  return (sent['messages'] ?? sent['input']) as readonly JsonObject[]
}

test('a recorded search of Claude: the call, its pages, and texts that cite them', async () => {
  const { parts, usage } = await entryOf(claude, SEARCH)
  const [call, result, text] = parts

  expect(call).toMatchObject({
    type: 'hosted',
    name: 'web_search',
    source: { kind: 'web', name: 'web_search' },
    arguments: '{"query":"latest stable Ruby version"}',
  })
  expect(result).toMatchObject({ type: 'hosted', name: 'web_search', source: { kind: 'web' } })
  expect(result?.type === 'hosted' && result.result).toContain(
    'Download Ruby | Ruby: https://www.ruby-lang.org/en/downloads/',
  )
  expect(call?.type === 'hosted' && result?.type === 'hosted' && call.callId === result.callId).toBe(true)
  expect(text).toMatchObject({
    type: 'text',
    annotations: [
      {
        url: 'https://www.ruby-lang.org/en/downloads/',
        title: 'Download Ruby | Ruby',
        quote: 'The current stable version is 4.0.6. ',
        from: 0,
        to: 39,
      },
    ],
  })
  expect(usage.hostedCalls).toEqual({ web_search: 1 })
})

test.each([
  ['a page that was fetched', FETCH, { kind: 'web', name: 'https://ai.pydantic.dev' }],
  ['code that ran', CODE, { kind: 'command' }],
])('%s is a call and a result with its source', async (_name, each, source) => {
  const { parts } = await entryOf(claude, each)
  const hosted = parts.filter((part) => part.type === 'hosted')

  const [call] = hosted
  expect(call).toMatchObject({ source, arguments: expect.stringContaining('{') as string })
  const results = hosted.filter((part) => part.callId === call?.callId && part.result !== undefined)
  expect(results).toMatchObject([{ source: { kind: source.kind } }])
})

test('a result of a server of which the call is in an earlier reply has a source', async () => {
  const { parts } = await entryOf(claude, MCP)
  const result = parts.find((part) => part.type === 'hosted')

  expect(result).toMatchObject({ source: { kind: 'server' } })
  expect(result?.type === 'hosted' && result.result).toMatch(/Pydantic AI/)
})

test('a recorded search of files cites a file at a place of the text', async () => {
  const { parts, usage } = await entryOf(gpt, FILES)

  expect(parts).toMatchObject([
    { type: 'hosted', name: 'file_search', arguments: '{"queries":["What is the capital of France?"]}' },
    {
      type: 'text',
      text: 'The capital of France is Paris.',
      annotations: [{ title: 'tmp8l5_2pzy.txt', fileId: 'file-9RhPAs9YqVajpGXRfcgavJ', from: 30, to: 30 }],
    },
  ])
  expect(usage.hostedCalls).toEqual({ file_search: 1 })
})

test('recorded annotations of OpenRouter are of the whole text, and its searches are counted', async () => {
  const { parts, usage } = await entryOf(router, ANNOTATED)
  const text = parts.find((part) => part.type === 'text')

  expect(text?.annotations?.[0]).toMatchObject({
    url: 'https://github.com/pydantic/pydantic-ai',
    from: 0,
    to: text?.text.length,
  })
  expect(usage.hostedCalls).toEqual({ web_search: 1 })
})

function isOfServer({ type }: JsonObject): boolean {
  return typeof type === 'string' && /server_tool_use|_result$/.test(type)
}

/** Blocks of a recorded message, as a request holds them. */
function blocksIn(each: ProviderCase): readonly JsonObject[] {
  const body = each.response.body
  return isObject(body) && Array.isArray(body['content']) ? (body['content'] as JsonObject[]) : []
}

test('what Claude executed goes back to it byte for byte', async () => {
  const [, message] = await sentBack(claude, await entryOf(claude, FETCH))
  const received = blocksIn(FETCH).filter(({ type }) => isOfServer({ type }))
  const sent = (message?.['content'] as readonly JsonObject[]).filter(({ type }) => isOfServer({ type }))

  expect(sent.map((block) => JSON.stringify(block))).toEqual(received.map((block) => JSON.stringify(block)))
})

test('citations go back to the same provider, and to another one as addresses in the text', async () => {
  const entry = await entryOf(claude, SEARCH)
  const own = JSON.stringify(await sentBack(claude, entry))
  const foreign = JSON.stringify(await sentBack(gpt, entry))
  const chat = JSON.stringify(await sentBack(router, entry))

  expect(own).toContain('"type":"web_search_result_location"')
  expect(own).toContain('"encrypted_index"')
  for (const text of [foreign, chat]) {
    expect(text).not.toContain('encrypted')
    expect(text).toContain('[web_search was run with {\\"query\\":\\"latest stable Ruby version\\"}]')
    expect(text).toContain('The latest stable Ruby version is 4.0.6 [https://www.ruby-lang.org/en/downloads/]')
  }
})

test("OpenAI's hosted items go back as they came, an image with its data", async () => {
  const search = {
    type: 'web_search_call',
    id: 'ws_1',
    status: 'completed',
    action: { type: 'search', query: 'tides', sources: [{ type: 'url', url: 'https://a.example' }] },
  }
  const image = {
    id: 'ig_1',
    type: 'image_generation_call',
    status: 'completed',
    output_format: 'webp',
    result: 'UklGRg==',
  }
  const ran = {
    id: 'ci_1',
    type: 'code_interpreter_call',
    status: 'completed',
    code: '1+1',
    container_id: 'c',
    outputs: [{ type: 'logs', logs: '2' }],
  }
  const called = {
    id: 'mcp_1',
    type: 'mcp_call',
    server_label: 'wiki',
    name: 'read_page',
    arguments: '{"page":1}',
    output: 'Tides.',
    error: null,
  }
  const citation = { type: 'url_citation', url: 'https://a.example', title: 'A', start_index: 1, end_index: 5 }
  const message = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: '🌊tide', annotations: [citation], logprobs: [] }],
  }
  const output = [search, ran, called, image, message]
  const each: ProviderCase = {
    ...FILES,
    stream: false,
    response: {
      status: 200,
      headers: {},
      body: { id: 'resp_1', status: 'completed', model: 'gpt-5.5', output, usage: null },
    },
  }
  const entry = await entryOf(gpt, each)

  expect(entry.parts).toMatchObject([
    { type: 'hosted', name: 'web_search', arguments: '{"type":"search","query":"tides"}', result: 'https://a.example' },
    { type: 'hosted', name: 'code_execution', source: { kind: 'command' }, result: '2' },
    { type: 'hosted', name: 'read_page', source: { kind: 'server', name: 'wiki' }, result: 'Tides.' },
    { type: 'image', data: 'UklGRg==', mediaType: 'image/webp' },
    { type: 'text', annotations: [{ url: 'https://a.example', title: 'A', from: 2, to: 6 }] },
  ])
  expect(entry.usage.hostedCalls).toEqual({ web_search: 1, code_execution: 1, connector: 1, image_generation: 1 })
  const sent = await sentBack(gpt, entry)
  expect(sent.slice(1, 5).map((item) => JSON.stringify(item))).toEqual(
    [search, ran, called, image].map((item) => JSON.stringify(item)),
  )
  expect(JSON.stringify(await sentBack(claude, entry))).toContain('[An image was made here: image/webp]')
})

test('offsets are those of UTF-16, however a provider counts', () => {
  expect([0, 1, 2, 9].map((count) => characterOffset('🌊ab', count))).toEqual([0, 2, 3, 4])
  expect([0, 4, 5, 9].map((count) => byteOffset('🌊ab', count))).toEqual([0, 2, 3, 4])
})

test('a run has its sources, its count of calls and their price', async () => {
  const model = claude(fetchOf(SEARCH, atRandom(3)))
  const harness = new Harness({ model, tools: [webSearch()], prices: {} })
  const stream = harness.stream('What is the latest Ruby?')
  const result = await stream.result

  expect(result.usage.hostedCalls).toEqual({ web_search: 1 })
  expect(result.sources.map(({ url, title }) => ({ url, title }))).toEqual([
    { url: 'https://www.ruby-lang.org/en/downloads/', title: 'Download Ruby | Ruby' },
    {
      url: 'https://www.ruby-lang.org/en/news/2026/07/14/ruby-4-0-6-released/',
      title: 'Ruby 4.0.6 Released | Ruby',
    },
  ])
  for (const { partId, from, to } of result.sources) {
    const [entryId, index] = partId.split('.')
    const entry = result.transcript.find(({ id }) => id === entryId)
    const part = entry?.role === 'assistant' ? entry.parts[Number(index)] : undefined
    expect(part?.type === 'text' && part.text.slice(from, to)).toMatch(/\S/)
  }
  expect(result.usage.costUsd).toBeGreaterThan(0.01)
})
