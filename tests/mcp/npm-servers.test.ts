import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Harness } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { mcpHttp, mcpSse } from '../../src/mcp/index.js'
import type { McpServer } from '../../src/mcp/index.js'
import { loadFirstSdk } from '../../src/mcp/first-sdk.js'
import { childEnvironment } from '../../src/mcp/child-environment.js'
import { resolveServerOptions } from '../../src/mcp/server-options.js'
import { serverAt } from '../../src/mcp/server.js'
import { calm, call, contextOf, hostOf, npmServer, programOf, textOf, toolNamed, toolsOf } from './support.js'

const started: ChildProcess[] = []
const urls = { http: '', sse: '' }
let folder = ''

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'thinharness-mcp-'))
  const [http, sse] = [await freePort(), await freePort()]
  await Promise.all([startEverything('streamableHttp', http), startEverything('sse', sse)])
  urls.http = `http://127.0.0.1:${http}/mcp`
  urls.sse = `http://127.0.0.1:${sse}/sse`
})

afterAll(async () => {
  for (const child of started) child.kill('SIGKILL')
  await rm(folder, { recursive: true, force: true })
})

const reached: [string, () => McpServer][] = [
  ['stdio', () => npmServer('everything', ['stdio'])],
  ['streamable HTTP', () => mcpHttp({ id: 'everything', url: urls.http })],
  ['SSE', () => mcpSse({ id: 'everything', url: urls.sse })],
  ['stdio, first SDK', () => firstSdkServer('stdio')],
  ['streamable HTTP, first SDK', () => firstSdkServer('http')],
  ['SSE, first SDK', () => firstSdkServer('sse')],
]

describe.each(reached)('server-everything over %s', (_name, make) => {
  test('MC-01 its tools are listed, and their results are those that it gives', async () => {
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
      content: JSON.stringify({ conditions: 'Light rain / drizzle', humidity: 82, temperature: 36 }, null, 2),
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

  test('progress is told while a call lasts', async () => {
    await using server = make()
    const heard: unknown[] = []
    const progress = (update: unknown): void => void heard.push(update)

    const result = call(server, 'trigger-long-running-operation', { duration: 0.4, steps: 2 }, { progress })

    expect(await textOf(result)).toContain('Long running operation completed')
    expect(heard[0]).toMatchObject({ progress: 1, total: 2 })
  })

  test('resources and prompts are there as an API and as tools', async () => {
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

test('MC-03 a scripted run works with the filesystem server, which stays in its folder', async () => {
  await writeFile(join(folder, 'a.txt'), 'hello')
  await using server = npmServer('filesystem', [folder])
  const model = new ScriptedModel()
    .calls('write_file', { path: join(folder, 'b.txt'), content: 'written' })
    .calls('read_text_file', { path: join(folder, 'a.txt') })
    .calls('read_text_file', { path: join(folder, '..', 'outside.txt') })
    .says('done')
  await using harness = new Harness({
    model,
    builtinTools: [],
    tools: await server.tools(hostOf({ roots: [folder] }), calm()),
  })

  const result = await harness.run('Copy.')

  expect(result.text).toBe('done')
  expect(await readFile(join(folder, 'b.txt'), 'utf8')).toBe('written')
  expect(model.heard.flatMap((heard) => (heard.kind === 'tool_outputs' ? heard.outputs : []))).toMatchObject([
    { ok: true },
    { ok: true, content: expect.stringContaining('hello') as unknown },
    { ok: false, metadata: { error_type: 'MCPToolError', source: 'mcp', mcp_server_id: 'filesystem' } },
  ])
})

test('MC-03 the memory server remembers between calls', async () => {
  await using server = npmServer('memory', [], { env: { MEMORY_FILE_PATH: join(folder, 'memory.jsonl') } })

  await call(server, 'create_entities', {
    entities: [{ name: 'Ann', entityType: 'person', observations: ['likes tea'] }],
  })

  expect(JSON.parse(await textOf(call(server, 'search_nodes', { query: 'tea' })))).toMatchObject({
    entities: [{ name: 'Ann' }],
  })
})

test('MC-03 the sequential-thinking server counts thoughts', async () => {
  await using server = npmServer('sequential-thinking')

  const thought = call(server, 'sequentialthinking', {
    thought: 'x',
    thoughtNumber: 1,
    totalThoughts: 2,
    nextThoughtNeeded: true,
  })

  expect(JSON.parse(await textOf(thought))).toMatchObject({ thoughtNumber: 1, totalThoughts: 2 })
})

test('resources and prompts are offered to a model where that is asked for', async () => {
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

function firstSdkServer(kind: 'stdio' | 'http' | 'sse'): McpServer {
  const settings = resolveServerOptions({ id: 'everything' }, { factory: 'test', own: [], defaultId: 'everything' })
  const { execPath: command } = process
  const args = [programOf('everything'), 'stdio']
  const endpoint =
    kind === 'stdio'
      ? { kind, command, args, env: childEnvironment({}), cwd: null }
      : { kind, url: new URL(urls[kind]), fetch, auth: null }
  return serverAt(endpoint, settings, loadFirstSdk)
}

async function startEverything(transport: string, port: number): Promise<void> {
  const env = { ...childEnvironment({}), PORT: String(port) }
  const child = spawn(process.execPath, [programOf('everything'), transport], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  started.push(child)
  await new Promise<void>((resolve, reject) => {
    const hear = (piece: Buffer): void => {
      if (/listening|running|port/i.test(piece.toString())) resolve()
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.on('exit', (code) => reject(new Error(`server-everything ended with ${String(code)}`)))
  })
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise<void>((resolve) => server.close(() => resolve()))
  return port
}
