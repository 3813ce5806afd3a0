import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { mcpHttp, mcpSse } from '#adapters/mcp/index.js'
import type { McpServer } from '#adapters/mcp/index.js'
import { call, contextOf, hostOf, npmServer, startedEverything, textOf, toolNamed, toolsOf } from './support.js'

const started: AsyncDisposable[] = []
const urls = { http: '', sse: '' }

beforeAll(async () => {
  const [http, sse] = await Promise.all([startedEverything('streamableHttp'), startedEverything('sse')])
  started.push(http, sse)
  urls.http = `${http.origin}/mcp`
  urls.sse = `${sse.origin}/sse`
})

afterAll(async () => {
  for (const server of started) await server[Symbol.asyncDispose]()
})

const reached: [string, () => McpServer][] = [
  ['stdio', () => npmServer('everything', ['stdio'])],
  ['streamable HTTP', () => mcpHttp({ id: 'everything', url: urls.http })],
  ['SSE', () => mcpSse({ id: 'everything', url: urls.sse })],
]

describe.each(reached)('server-everything over %s', (_name, make) => {
  test('MC-01 the tools of a real server are listed, and their results reach the run', async () => {
    await using server = make()
    const host = hostOf({ elicit: async () => ({ action: 'accept', content: { name: 'Ann', check: true } }) })
    const tools = await toolsOf(server, host)
    const outcome = async (name: string, args = {}): Promise<unknown> => {
      const tool = await toolNamed(server, name, host)
      return await tool.call(args, contextOf())
    }
    const metadata = (mcp_tool_name: string): object => ({ source: 'mcp', mcp_server_id: 'everything', mcp_tool_name })

    expect(tools.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['echo', 'get-sum', 'trigger-elicitation-request']),
    )
    expect(await outcome('echo', { message: 'hé 🎉' })).toEqual({
      kind: 'succeeded',
      content: 'Echo: hé 🎉',
      metadata: metadata('echo'),
    })
    expect(await outcome('get-structured-content', { location: 'Chicago' })).toMatchObject({
      content: JSON.stringify({ temperature: 36, conditions: 'Light rain / drizzle', humidity: 82 }),
    })
    expect(await outcome('get-tiny-image')).toMatchObject({
      content: "Here's the image you requested:\n[image: image/png]\nThe image above is the MCP logo.",
      parts: [{ type: 'image', mediaType: 'image/png' }],
    })
    expect(await outcome('get-resource-links', { count: 2 })).toMatchObject({
      metadata: {
        resource_links: [{ uri: 'demo://resource/dynamic/blob/1' }, { uri: 'demo://resource/dynamic/text/2' }],
      },
    })
    expect(await outcome('echo', {})).toMatchObject({ kind: 'failed', errorType: 'MCPToolError', retry: false })
    expect(await outcome('trigger-elicitation-request')).toMatchObject({
      content: expect.stringContaining('- Name: Ann') as unknown,
    })
  })

  test('progress is emitted during a call', async () => {
    await using server = make()
    const heard: unknown[] = []
    const progress = (update: unknown): void => void heard.push(update)

    const result = call(server, 'trigger-long-running-operation', { duration: 0.4, steps: 2 }, { progress })

    expect(await textOf(result)).toContain('Long running operation completed')
    expect(heard[0]).toMatchObject({ progress: 1, total: 2 })
  })

  test('resources and prompts are available as an API and as tools', async () => {
    await using server = make()

    expect((await server.resources.list()).map(({ uri }) => uri)).toContain(
      'demo://resource/static/document/features.md',
    )
    expect((await server.resources.templates()).map(({ uriTemplate }) => uriTemplate)).toContain(
      'demo://resource/dynamic/text/{resourceId}',
    )
    expect(await server.resources.read('demo://resource/dynamic/text/1')).toMatchObject([{ mimeType: 'text/plain' }])
    expect((await server.prompts.list()).map(({ name }) => name)).toContain('args-prompt')
    expect(await server.prompts.get('args-prompt', { city: 'Rome' })).toMatchObject({
      messages: [{ role: 'user', content: [{ type: 'text', text: "What's weather in Rome?" }] }],
    })
    await expect(server.resources.read('demo://nowhere')).rejects.toThrow('MCP server `everything`: ')
    expect(await server.instructions()).toContain('Everything Server')
  })
})

test('resources and prompts are offered to a model if that is enabled', async () => {
  await using server = npmServer('everything', ['stdio'], {
    toolPrefix: 'ev',
    offer: ['resources', 'prompts'],
    useInstructions: true,
  })
  const tools = await toolsOf(server)

  expect(tools.map(({ name }) => name)).toEqual([
    'ev_list_resources',
    'ev_read_resource',
    'ev_list_prompts',
    'ev_get_prompt',
  ])
  expect(tools.map(({ instructions }) => instructions?.slice(0, 19))).toEqual([
    '# Everything Server',
    undefined,
    undefined,
    undefined,
  ])
  expect(await call(server, 'ev_read_resource', { uri: 'demo://resource/dynamic/blob/1' })).toMatchObject({
    kind: 'succeeded',
    parts: [{ type: 'file', mediaType: 'text/plain' }],
  })
})
