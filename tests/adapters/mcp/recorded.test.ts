import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { JsonObject } from 'thinharness'
import { outcomeOfResult } from '#adapters/mcp/client/result-content.js'
import { mcpHttp, mcpSse } from '#adapters/mcp/index.js'
import type { McpServer } from '#adapters/mcp/index.js'
import { publicToolName } from '#adapters/mcp/client/tool-list.js'
import { contextOf, hostOf, npmServer, startedEverything, toolNamed, toolsOf } from './support.js'
import { temporaryFolder } from '../../support/folder.js'

/** Recorded answers of the servers from npm. */
const FOLDER = new URL('../../fixtures/mcp/', import.meta.url).pathname

function recorded(name: string): unknown {
  return JSON.parse(readFileSync(join(FOLDER, `${name}.json`), 'utf8'))
}

interface RecordedTool {
  readonly name: string
  readonly description: string
  readonly inputSchema: JsonObject
}

interface RecordedCall {
  readonly name: string
  readonly arguments: JsonObject
  readonly result?: JsonObject
  readonly progress?: readonly JsonObject[]
  readonly error?: { readonly code: string }
}

interface Recording {
  readonly instructions: string
  readonly resources: readonly JsonObject[]
  readonly resourceTemplates: readonly JsonObject[]
  readonly prompts: readonly JsonObject[]
  readonly calls: readonly RecordedCall[]
}

const folder = temporaryFolder()
const origins = { http: '', sse: '' }
const started: AsyncDisposable[] = []

beforeAll(async () => {
  const [http, sse] = await Promise.all([startedEverything('streamableHttp'), startedEverything('sse')])
  started.push(http, sse)
  Object.assign(origins, { http: http.origin, sse: sse.origin })
})

afterAll(async () => {
  for (const server of started) await server[Symbol.asyncDispose]()
})

/** Times inside texts and blobs, which vary. */
function timeless(value: unknown): unknown {
  const text = JSON.stringify(value)
  return JSON.parse(
    text
      .replace(
        /UmVzb3VyY2Ug[A-Za-z0-9+/=]+/g,
        (blob) => `at ${Buffer.from(blob, 'base64').toString().replace(TIME, 'T')}`,
      )
      .replace(TIME, 'T'),
  )
}

const TIME = /\d{1,2}:\d\d:\d\d(?:\s[AP]M)?/g

describe('recorded servers', () => {
  test.each([
    ['everything', () => npmServer('everything', ['stdio'], { sampling: true })],
    ['filesystem', () => npmServer('filesystem', [folder])],
    ['memory', () => npmServer('memory', [], { env: { MEMORY_FILE_PATH: join(folder, 'memory.jsonl') } })],
    ['sequential-thinking', () => npmServer('sequential-thinking')],
  ])("MC-01 tools are offered with the server's own descriptions and schemas: %s", async (name, make) => {
    await using server = make()
    const { tools } = recorded(`${name}.tools`) as { tools: readonly RecordedTool[] }

    const offered = await toolsOf(server, hostOf({ elicit: async () => ({ action: 'decline' }) }))

    expect(offered.map(({ name: given, description, parameters }) => ({ given, description, parameters }))).toEqual(
      expect.arrayContaining(
        tools.map(({ name: given, description, inputSchema }) => ({
          given: publicToolName(given, ''),
          description,
          parameters: inputSchema,
        })),
      ),
    )
  })

  test.each<[string, (options: object) => McpServer]>([
    ['stdio', (options) => npmServer('everything', ['stdio'], options)],
    ['streamable HTTP', (options) => mcpHttp({ id: 'everything', url: `${origins.http}/mcp`, ...options })],
    ['SSE', (options) => mcpSse({ id: 'everything', url: `${origins.sse}/sse`, ...options })],
  ])(
    'MC-01 calls of server-everything yield the recorded results: %s',
    async (_transport, make) => {
      const { calls, resources, resourceTemplates, prompts, instructions } = recorded('everything.results') as Recording
      const sampling = async (): Promise<object> => ({ text: 'sampled', model: 'm', stopReason: 'end_turn' })
      await using server = make({ sampling, roots: [] })
      const host = hostOf({ elicit: async () => ({ action: 'decline' }) })
      const known = calls.filter(({ name, result }) => result !== undefined && name !== 'nope')

      for (const { name, arguments: args, result, progress } of known) {
        const heard: unknown[] = []
        const tool = await toolNamed(server, name, host)
        const outcome = await tool.call(args, contextOf({ progress: (update) => void heard.push(update) }))
        const metadata = { source: 'mcp', mcp_server_id: 'everything', mcp_tool_name: name }
        expect(timeless(outcome)).toEqual(timeless(outcomeOfResult(result, metadata, false)))
        // The last one may come with the result, which ends the call.
        if (progress !== undefined) expect(progress.slice(0, heard.length)).toMatchObject(heard)
        expect(heard.length).toBeGreaterThanOrEqual((progress?.length ?? 1) - 1)
      }
      expect(known).toHaveLength(14)
      const named = (list: readonly JsonObject[], key: string): unknown[] => list.map((item) => item[key])
      expect((await server.resources.list()).map(({ uri }) => uri)).toEqual(named(resources, 'uri'))
      expect((await server.resources.templates()).map((each) => each.uriTemplate)).toEqual(
        named(resourceTemplates, 'uriTemplate'),
      )
      expect((await server.prompts.list()).map(({ name }) => name)).toEqual(named(prompts, 'name'))
      expect(await server.instructions()).toBe(instructions)
    },
    60_000,
  )
})
