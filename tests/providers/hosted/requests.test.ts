import { expect, test } from 'vitest'
import { Harness } from 'thinharness'
import type { Model, ToolSpec } from 'thinharness'
import {
  anthropic,
  codeExecution,
  connector,
  fileSearch,
  fromAiSdk,
  imageGeneration,
  openai,
  openaiChat,
  openrouter,
  webFetch,
  webSearch,
} from 'thinharness/providers'
import type { JsonObject } from '#util/json.js'
import { requestProblems } from '../../support/request-validator.js'

interface Sent {
  readonly body: JsonObject
  readonly headers: Headers
}

type MakeModel = (fetch: typeof globalThis.fetch) => Model

/** The request that a run with these tools sends; the answer is an error that ends the run. */
async function sentBy(make: MakeModel, tools: readonly ToolSpec[], more: object = {}): Promise<Sent> {
  let sent: Sent | undefined
  const fetch = async (_url: unknown, init?: RequestInit): Promise<Response> => {
    const body = (await new Response(init?.body).json()) as JsonObject
    sent = { body, headers: new Headers(init?.headers) }
    return Response.json({ error: { type: 'invalid_request_error', message: 'enough' } }, { status: 400 })
  }
  const run = new Harness({ model: make(fetch), tools: [...tools], ...more }).run('Hello')
  const error: unknown = await run.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (sent === undefined) throw error
  return sent
}

const claude: MakeModel = (fetch) => anthropic('claude-sonnet-5', { apiKey: 'key', fetch, promptCache: false })
const gpt: MakeModel = (fetch) => openai('gpt-5.5', { apiKey: 'key', fetch })
const router: MakeModel = (fetch) => openrouter('x-ai/grok-4', { apiKey: 'key', fetch })

const PLACE = { city: 'Kyoto', country: 'JP', timezone: 'Asia/Tokyo' }
const files = fileSearch({ storeIds: ['vs_1'], maxResults: 5, maxUses: 2 })
const wiki = connector({
  name: 'wiki',
  url: 'https://wiki.example/mcp',
  authorization: 'token-of-the-wiki',
  allowedTools: ['read_page'],
})

const CLAUDE_TOOLS: readonly (readonly [string, ToolSpec, JsonObject])[] = [
  [
    'a search of some domains',
    webSearch({ allowedDomains: ['example.org'], maxUses: 3, userLocation: PLACE }),
    {
      type: 'web_search_20250305',
      name: 'web_search',
      max_uses: 3,
      allowed_domains: ['example.org'],
      user_location: { type: 'approximate', ...PLACE },
    },
  ],
  [
    'a search without domains',
    webSearch({ blockedDomains: ['ads.example'] }),
    { type: 'web_search_20250305', name: 'web_search', max_uses: 8, blocked_domains: ['ads.example'] },
  ],
  [
    'a newer version of the search',
    webSearch({ providerOptions: { anthropic: { type: 'web_search_20260318', response_inclusion: 'excluded' } } }),
    { type: 'web_search_20260318', name: 'web_search', max_uses: 8, response_inclusion: 'excluded' },
  ],
  [
    'pages',
    webFetch({ maxContentTokens: 9000 }),
    {
      type: 'web_fetch_20250910',
      name: 'web_fetch',
      max_uses: 8,
      max_content_tokens: 9000,
      citations: { enabled: true },
    },
  ],
  ['code', codeExecution(), { type: 'code_execution_20250825', name: 'code_execution' }],
]

test.each(CLAUDE_TOOLS)('the Messages API gets %s', async (_name, tool, expected) => {
  const { body } = await sentBy(claude, [tool])

  expect(body['tools']).toEqual([expected])
  for (const version of ['2023-06-01', '2026-10-21'])
    expect(requestProblems('anthropic-messages', body, { version })).toEqual([])
})

test('the Messages API gets a server to connect to, its token and the beta feature', async () => {
  const { body, headers } = await sentBy(claude, [wiki])

  expect(body['tools']).toEqual([
    {
      type: 'mcp_toolset',
      mcp_server_name: 'wiki',
      default_config: { enabled: false },
      configs: { read_page: { enabled: true } },
    },
  ])
  expect(body['mcp_servers']).toEqual([
    { type: 'url', name: 'wiki', url: 'https://wiki.example/mcp', authorization_token: 'token-of-the-wiki' },
  ])
  expect(headers.get('anthropic-beta')).toBe('mcp-client-2025-11-20')
  expect(requestProblems('anthropic-messages-beta', body, { version: '2026-10-21' })).toEqual([])
})

test('a beta feature of the caller stays beside that of a connector', async () => {
  const headers = { 'anthropic-beta': 'output-300k-2026-03-24' }
  const sent = await sentBy((fetch) => anthropic('claude-sonnet-5', { apiKey: 'key', fetch, headers }), [wiki])

  expect(sent.headers.get('anthropic-beta')).toBe('output-300k-2026-03-24,mcp-client-2025-11-20')
})

const GPT_TOOLS: readonly (readonly [string, ToolSpec, JsonObject, JsonObject])[] = [
  [
    'a search',
    webSearch({ allowedDomains: ['example.org'], contextSize: 'low', userLocation: PLACE }),
    {
      type: 'web_search',
      filters: { allowed_domains: ['example.org'] },
      search_context_size: 'low',
      user_location: { type: 'approximate', ...PLACE },
    },
    { include: ['reasoning.encrypted_content', 'web_search_call.action.sources'], max_tool_calls: 8 },
  ],
  [
    'code with files',
    codeExecution({ fileIds: ['file-1'], maxUses: 4 }),
    { type: 'code_interpreter', container: { type: 'auto', file_ids: ['file-1'] } },
    { include: ['reasoning.encrypted_content', 'code_interpreter_call.outputs'], max_tool_calls: 4 },
  ],
  [
    'a search of files',
    files,
    { type: 'file_search', vector_store_ids: ['vs_1'], max_num_results: 5 },
    { include: ['reasoning.encrypted_content', 'file_search_call.results'], max_tool_calls: 2 },
  ],
  [
    'images',
    imageGeneration({ size: '1024x1024', quality: 'low', format: 'webp', maxUses: 1 }),
    { type: 'image_generation', size: '1024x1024', quality: 'low', output_format: 'webp' },
    { include: ['reasoning.encrypted_content'], max_tool_calls: 1 },
  ],
  [
    'a server',
    wiki,
    {
      type: 'mcp',
      server_label: 'wiki',
      server_url: 'https://wiki.example/mcp',
      authorization: 'token-of-the-wiki',
      allowed_tools: ['read_page'],
      require_approval: 'never',
    },
    { max_tool_calls: 32 },
  ],
  [
    'a connector of its own',
    connector({ name: 'mail', connectorId: 'connector_gmail' }),
    { type: 'mcp', server_label: 'mail', connector_id: 'connector_gmail', require_approval: 'never' },
    {},
  ],
]

test.each(GPT_TOOLS)('the Responses API gets %s', async (_name, tool, expected, fields) => {
  const { body } = await sentBy(gpt, [tool])

  expect(body['tools']).toEqual([expected])
  expect(body).toMatchObject(fields)
  for (const api of ['openai-responses', 'openai-responses-sdk']) expect(requestProblems(api, body)).toEqual([])
})

test('the Responses API bounds the calls of all hosted tools together', async () => {
  const { body } = await sentBy(gpt, [webSearch({ maxUses: 3 }), files])

  expect(body['max_tool_calls']).toBe(5)
})

test('a hosted tool can be demanded by its name', async () => {
  const settings = { toolChoice: { tool: 'web_search' } }

  expect((await sentBy(gpt, [webSearch()], { settings })).body['tool_choice']).toEqual({
    type: 'allowed_tools',
    mode: 'required',
    tools: [{ type: 'web_search' }],
  })
  expect((await sentBy(claude, [webSearch()], { settings })).body['tool_choice']).toEqual({
    type: 'tool',
    name: 'web_search',
  })
})

test('OpenRouter gets its own tools, beside those of the harness', async () => {
  const { body } = await sentBy(router, [webSearch({ blockedDomains: ['ads.example'] }), webFetch({ maxUses: 2 })])

  expect(body['tools']).toEqual([
    { type: 'openrouter:web_search', parameters: { max_uses: 8, excluded_domains: ['ads.example'] } },
    { type: 'openrouter:web_fetch', parameters: { max_uses: 2 } },
  ])
})

test("OpenAI's chat completions search with a model for searches", async () => {
  const make: MakeModel = (fetch) => openaiChat('gpt-5-search-api', { apiKey: 'key', fetch })
  const { body } = await sentBy(make, [webSearch({ contextSize: 'high', userLocation: PLACE })])

  expect(body['tools']).toBeUndefined()
  expect(body['web_search_options']).toEqual({
    search_context_size: 'high',
    user_location: { type: 'approximate', approximate: PLACE },
  })
  expect(requestProblems('openai-chat', body)).toEqual([])
})

const REFUSED: readonly (readonly [string, MakeModel, ToolSpec, RegExp])[] = [
  ['files of Claude', claude, files, /`anthropic:claude-sonnet-5` has no hosted tool `file_search`.*`web_search`/],
  ['images of Claude', claude, imageGeneration(), /no hosted tool `image_generation`/],
  [
    'connectors of Claude',
    claude,
    connector({ name: 'mail', connectorId: 'connector_gmail' }),
    /no hosted tool `mail` of kind `connector`/,
  ],
  ['pages of GPT', gpt, webFetch(), /`openai:gpt-5.5` has no hosted tool `web_fetch`/],
  ['code of OpenRouter', router, codeExecution(), /`openrouter:x-ai\/grok-4` has no hosted tool `code_execution`/],
  [
    'a search of another chat model',
    (fetch) => openaiChat('gpt-5.5', { apiKey: 'key', fetch }),
    webSearch(),
    /`openai-chat:gpt-5.5` has no hosted tool `web_search`. It has no hosted tools/,
  ],
]

test.each(REFUSED)('%s are refused by name, before anything is sent', async (_name, make, tool, message) => {
  await expect(sentBy(make, [tool])).rejects.toMatchObject({
    code: 'invalid_options',
    message: expect.stringMatching(message) as string,
  })
})

/** The tools of a call of an AI SDK model. */
async function aiSdkTools(
  provider: string,
  specificationVersion: string,
  tools: readonly ToolSpec[],
): Promise<unknown> {
  let given: unknown
  const doGenerate = (call: { readonly tools?: unknown }): Promise<never> => {
    given = call.tools
    return Promise.reject(Object.assign(new Error('enough'), { statusCode: 400, isRetryable: false }))
  }
  const model = { specificationVersion, provider, modelId: 'm', doGenerate, doStream: doGenerate }
  const run = new Harness({ model: fromAiSdk(model), tools: [...tools] }).run('Hello')
  const error: unknown = await run.catch((reason: unknown) => reason)
  if (given === undefined) throw error
  return given
}

test('models of the AI SDK get provider-defined tools, by the word of their version', async () => {
  const search = webSearch({ allowedDomains: ['example.org'] })

  expect(await aiSdkTools('anthropic.messages', 'v2', [search])).toEqual([
    {
      type: 'provider-defined',
      id: 'anthropic.web_search_20250305',
      name: 'web_search',
      args: { maxUses: 8, allowedDomains: ['example.org'] },
    },
  ])
  expect(await aiSdkTools('openai.responses', 'v3', [search, codeExecution()])).toEqual([
    {
      type: 'provider',
      id: 'openai.web_search',
      name: 'web_search',
      args: { filters: { allowedDomains: ['example.org'] } },
    },
    { type: 'provider', id: 'openai.code_interpreter', name: 'code_execution', args: {} },
  ])
  expect(await aiSdkTools('google.generative-ai', 'v4', [webFetch()])).toEqual([
    { type: 'provider', id: 'google.url_context', name: 'web_fetch', args: {} },
  ])
  await expect(aiSdkTools('acme.chat', 'v3', [search])).rejects.toThrow('`acme.chat:m` has no hosted tool `web_search`')
})

test('options are checked where they are given', () => {
  const both = { allowedDomains: ['a.example'], blockedDomains: ['b.example'] }
  const cases: readonly (readonly [() => unknown, string])[] = [
    [() => webSearch(both), 'Expected `allowedDomains` or `blockedDomains` for `webSearch`, got both.'],
    [() => webFetch({ allowedDomains: ['https://a.example'] }), '`allowedDomains'],
    [() => webSearch({ maxUses: 0 }), '`maxUses`'],
    [() => fileSearch({ storeIds: [] }), '`storeIds`'],
    [() => connector({ name: 'wiki' }), 'Expected either `url` or `connectorId` for `connector`.'],
    [() => connector({ name: 'w', url: 'ftp://x' }), '`url`'],
  ]
  for (const [make, message] of cases) expect(make).toThrow(message)
})

test('the token of a connector is in no description and no configuration', () => {
  expect(JSON.stringify(wiki)).not.toContain('token-of-the-wiki')
})
