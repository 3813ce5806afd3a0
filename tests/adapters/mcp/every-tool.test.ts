import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Harness } from 'thinharness'
import type { JsonObject, PendingItem } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { mcpHttp, mcpSse } from '#adapters/mcp/index.js'
import type { McpServer } from '#adapters/mcp/index.js'
import { npmServer, startedEverything } from './support.js'
import { temporaryFolder } from '../../support/folder.js'

const folder = temporaryFolder()
const origins = { http: '', sse: '' }
const started: AsyncDisposable[] = []

beforeAll(async () => {
  const [http, sse] = await Promise.all([startedEverything('streamableHttp'), startedEverything('sse')])
  started.push(http, sse)
  Object.assign(origins, { http: http.origin, sse: sse.origin })
  await writeFile(join(folder, 'a.txt'), 'hello\nworld\n')
})

afterAll(async () => {
  for (const server of started) await server[Symbol.asyncDispose]()
})

/** A call, and what must be in its result; `fails`: the server refuses it. */
type Row = readonly [name: string, args: () => JsonObject, expected: string, fails?: 'fails']

const at = (name: string): string => join(folder, name)
const ENTITY = { name: 'Ann', entityType: 'person', observations: ['likes tea'] }
const RELATION = { from: 'Ann', to: 'Ann', relationType: 'knows' }

const EVERYTHING: readonly Row[] = [
  ['echo', () => ({ message: 'hé' }), 'Echo: hé'],
  ['get-annotated-message', () => ({ messageType: 'error' }), 'Error'],
  ['get-env', () => ({}), 'PATH'],
  ['get-resource-links', () => ({ count: 1 }), 'resource'],
  ['get-resource-reference', () => ({ resourceType: 'Text', resourceId: 1 }), 'demo://resource/dynamic/text/1'],
  ['get-structured-content', () => ({ location: 'Chicago' }), 'temperature'],
  ['get-sum', () => ({ a: 2, b: 3 }), '5'],
  ['get-tiny-image', () => ({}), '[image: image/png]'],
  ['gzip-file-as-resource', () => ({ name: 'x.gz', data: 'data:text/plain,hello', outputType: 'resource' }), 'x.gz'],
  ['toggle-simulated-logging', () => ({}), 'logging'],
  ['toggle-subscriber-updates', () => ({}), 'updates'],
  ['trigger-long-running-operation', () => ({ duration: 0.1, steps: 1 }), 'completed'],
  ['get-roots-list', () => ({}), 'file://'],
  ['trigger-elicitation-request', () => ({}), 'declined'],
  ['trigger-url-elicitation', () => ({ url: 'https://example.com/' }), 'declin'],
  // A research task, which is an extension of the protocol: its server says that a plain call is none.
  ['simulate-research-query', () => ({ topic: 'tea' }), 'requires task augmentation', 'fails'],
  ['trigger-sampling-request', () => ({ prompt: 'Say yes.', maxTokens: 10 }), 'Sampled.'],
]
const FILES: readonly Row[] = [
  ['read_file', () => ({ path: at('a.txt') }), 'hello'],
  ['read_text_file', () => ({ path: at('a.txt'), head: 1 }), 'hello'],
  ['read_media_file', () => ({ path: at('a.txt') }), ''],
  ['read_multiple_files', () => ({ paths: [at('a.txt')] }), 'hello'],
  ['write_file', () => ({ path: at('b.txt'), content: 'new' }), 'b.txt'],
  ['edit_file', () => ({ path: at('b.txt'), edits: [{ oldText: 'new', newText: 'old' }] }), 'old'],
  ['create_directory', () => ({ path: at('c') }), 'c'],
  ['list_directory', () => ({ path: folder }), 'a.txt'],
  ['list_directory_with_sizes', () => ({ path: folder }), 'a.txt'],
  ['directory_tree', () => ({ path: folder }), 'a.txt'],
  ['move_file', () => ({ source: at('b.txt'), destination: at('c/b.txt') }), 'b.txt'],
  ['search_files', () => ({ path: folder, pattern: '**/*.txt' }), 'a.txt'],
  ['get_file_info', () => ({ path: at('a.txt') }), 'size'],
  ['list_allowed_directories', () => ({}), 'thinharness-'],
  ['read_file', () => ({ path: join(folder, '..', 'outside.txt') }), 'denied', 'fails'],
]
const MEMORY: readonly Row[] = [
  ['create_entities', () => ({ entities: [ENTITY] }), 'Ann'],
  ['create_relations', () => ({ relations: [RELATION] }), 'knows'],
  ['add_observations', () => ({ observations: [{ entityName: 'Ann', contents: ['sings'] }] }), 'sings'],
  ['read_graph', () => ({}), 'likes tea'],
  ['search_nodes', () => ({ query: 'tea' }), 'Ann'],
  ['open_nodes', () => ({ names: ['Ann'] }), 'Ann'],
  ['delete_observations', () => ({ deletions: [{ entityName: 'Ann', observations: ['sings'] }] }), ''],
  ['delete_relations', () => ({ relations: [RELATION] }), ''],
  ['delete_entities', () => ({ entityNames: ['Ann'] }), ''],
]
const THINKING: readonly Row[] = [
  [
    'sequentialthinking',
    () => ({ thought: 'x', nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 }),
    'thoughtNumber',
  ],
]

const EVERYTHING_ID = { id: 'everything', sampling: true } as const

const SERVERS: readonly [string, string, () => McpServer, readonly Row[]][] = [
  ['everything', 'stdio', () => npmServer('everything', ['stdio'], EVERYTHING_ID), EVERYTHING],
  ['everything', 'streamable HTTP', () => mcpHttp({ ...EVERYTHING_ID, url: `${origins.http}/mcp` }), EVERYTHING],
  ['everything', 'SSE', () => mcpSse({ ...EVERYTHING_ID, url: `${origins.sse}/sse` }), EVERYTHING],
  ['filesystem', 'stdio', () => npmServer('filesystem', [folder]), FILES],
  ['memory', 'stdio', () => npmServer('memory', [], { env: { MEMORY_FILE_PATH: at('memory.jsonl') } }), MEMORY],
  ['sequential-thinking', 'stdio', () => npmServer('sequential-thinking'), THINKING],
]

test.each(SERVERS)(
  'MC-03 every tool of a real server works in a run: %s, %s',
  async (id, _transport, make, rows) => {
    const model = ScriptedModel.each(({ transcript }) => {
      const [first] = transcript
      if (!JSON.stringify(first).includes('Call them all.')) return new ScriptedModel().says('Sampled.')
      // A run that goes on opens another session.
      const left = rows.slice(transcript.filter(({ role }) => role === 'tool').length)
      return left.reduce((script, [name, args]) => script.calls(name, args()), new ScriptedModel()).says('Done.')
    })
    await using harness = new Harness({ model, builtinTools: [], root: folder, mcpServers: [make()] })
    let result = await harness.run('Call them all.', { limits: { modelRequests: 100 } })
    while (result.resumeState !== null && result.pending.length > 0) {
      const answers = result.pending.map(({ callId }: PendingItem) => ({ callId, answer: { action: 'decline' } }))
      result = await harness.resume(result.resumeState, answers)
    }
    const listed = model.requests.find(({ constants }) => constants.tools.length > 0)?.constants.tools ?? []
    const results = result.transcript.filter((entry) => entry.role === 'tool')

    expect(result.text).toBe('Done.')
    expect(new Set(rows.map(([name]) => name))).toEqual(new Set(listed.map(({ name }) => name)))
    expect(results.map(({ name, content, isError }) => ({ name, isError, content: JSON.stringify(content) }))).toEqual(
      rows.map(([name, , expected, fails]) => ({
        name,
        isError: fails !== undefined,
        content: expect.stringContaining(expected) as unknown,
      })),
    )
    for (const { name, content } of results) {
      expect(JSON.stringify(content)).toContain(`\\"mcp_server_id\\":\\"${id}\\",\\"mcp_tool_name\\":\\"${name}\\"`)
    }
  },
  60_000,
)
