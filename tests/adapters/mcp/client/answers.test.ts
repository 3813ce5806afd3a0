import fc from 'fast-check'
import { getRequestListener } from '@hono/node-server'
import { describe, expect, onTestFinished, test } from 'vitest'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { JsonObject } from 'thinharness'
import { mcpHttp } from 'thinharness/mcp'
import type { McpServer } from 'thinharness/mcp'
import { call, hostOf, oddServer, textOf, toolsOf } from '../support.js'

/** A server whose tool `say` answers with `message`, a member of its answer beside the id, as JSON text. */
interface Answering extends AsyncDisposable {
  readonly server: McpServer
}

function overStdio(): Answering {
  const server = oddServer(
    `{
      'tools/list': () => ({ tools: [tool('say', { annotations: null, outputSchema: null, inputSchema: { type: 'object', required: null } })] }),
      'tools/call': ({ arguments: { message } }, { id }) => raw('{"id":' + id + ',' + message.slice(1) + '\\n') && undefined,
    }`,
    { timeouts: { callMs: 20_000 } },
  )
  return { server, [Symbol.asyncDispose]: () => server.close() }
}

async function overHttp(asEvents: boolean): Promise<Answering> {
  const http = createServer((request, response) => {
    void (async () => {
      let body = ''
      for await (const piece of request) body += String(piece)
      if (request.method !== 'POST') return void response.writeHead(405).end()
      const { id, method, params } = JSON.parse(body) as JsonObject
      if (id === undefined) return void response.writeHead(202).end()
      const answer = `{"id":${JSON.stringify(id)},${answerTo(method, (params ?? {}) as JsonObject).slice(1)}`
      response.writeHead(200, { 'content-type': asEvents ? 'text/event-stream' : 'application/json' })
      response.end(asEvents ? `data: ${answer}\r\n\r\n` : answer)
    })()
  })
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  const { port } = http.address() as AddressInfo
  const server = mcpHttp({ id: 'odd', url: `http://127.0.0.1:${port}/mcp`, timeouts: { callMs: 20_000 } })
  const end = async (): Promise<void> => {
    await server.close()
    http.closeAllConnections()
    await new Promise<void>((resolve) => http.close(() => resolve()))
  }
  return { server, [Symbol.asyncDispose]: end }
}

function answerTo(method: unknown, { protocolVersion, arguments: args }: JsonObject): string {
  const info = { protocolVersion: protocolVersion ?? '', capabilities: { tools: {} }, instructions: null }
  if (method === 'initialize') return result({ ...info, serverInfo: { name: 'odd', version: '1' } })
  if (method === 'tools/list') return result({ tools: [{ name: 'say', title: null, inputSchema: { type: 'object' } }] })
  if (method === 'tools/call') return (args as { message: string }).message
  return JSON.stringify({ jsonrpc: '2.0', error: { code: -32601, message: 'unknown method' } })
}

function result(value: JsonObject): string {
  return JSON.stringify({ jsonrpc: '2.0', result: value })
}

const word = fc.stringMatching(/^[a-z]{6,12}$/)
/** Members that servers send as null, or that no revision knows. */
const odd = fc.constantFrom<JsonObject>(
  {},
  { annotations: null },
  { _meta: null },
  { mimeType: null, title: null },
  { x: 1 },
)
const textBlock = fc.tuple(word, odd).map(([text, more]) => ({ block: { type: 'text', text, ...more }, text }))
const otherBlock = fc
  .constantFrom<JsonObject | null>(
    { type: 'hologram', text: null },
    { type: 'image', data: '%%%', mimeType: 'image/png' },
    { type: 'image', data: null, mimeType: null },
    { type: 'resource', resource: null },
    null,
  )
  .map((block) => ({ block, text: '' }))
const members = fc.record({
  isError: fc.constantFrom(null, false, true, undefined),
  structuredContent: fc.constantFrom<unknown>(null, undefined, { n: 1, none: null }, ['a'], 'plain', 7),
  _meta: fc.constantFrom<unknown>(null, undefined, { progressToken: null }),
})

describe.each<[string, () => Answering | Promise<Answering>]>([
  ['stdio', overStdio],
  ['streamable HTTP, as JSON', () => overHttp(false)],
  ['streamable HTTP, as events', () => overHttp(true)],
])('over %s', (_transport, make) => {
  test('whatever a server answers to a call, the model reads all of its text, and whether the call ran', async () => {
    await using odds = await make()
    const blocks = fc.array(fc.oneof(textBlock, otherBlock), { minLength: 1, maxLength: 4 })
    const answer = fc.tuple(blocks, members).map(([all, more]) => ({
      texts: all.map(({ text }) => text),
      isError: more.isError === true,
      message: result({ content: all.map(({ block }) => block), ...more } as JsonObject),
    }))
    await fc.assert(
      fc.asyncProperty(answer, async ({ texts, isError, message }) => {
        const outcome = await call(odds.server, 'say', { message })

        expect(outcome.kind).toBe(isError ? 'failed' : 'succeeded')
        if (outcome.kind !== 'failed' && outcome.kind !== 'succeeded') return
        for (const text of texts) expect(outcome.content).toContain(text)
        expect(outcome.content).not.toMatch(/"code"|invalid_|expected/)
        if (outcome.kind === 'failed') expect(outcome.errorType).toBe('MCPToolError')
      }),
      { numRuns: 60 },
    )
  })

  test.each([
    ['a result of null', '{"jsonrpc":"2.0","result":null}', 'The tool ran and returned nothing.'],
    ['a text', '{"jsonrpc":"2.0","result":"forty rows"}', 'forty rows'],
    ['a list of blocks', '{"result":[{"type":"text","text":"forty rows"}]}', 'forty rows'],
    ['no result', '{"jsonrpc":"2.0","ok":1}', 'The server answered with nothing, which is no result.'],
    ['an error that is a text', '{"jsonrpc":"2.0","error":"no such row"}', 'no such row'],
    ['an error without a code', '{"error":{"message":"no such row","code":null}}', 'no such row'],
  ])('an answer with the id of a call ends it at once: %s', async (_name, message, expected) => {
    await using odds = await make()

    expect(await textOf(call(odds.server, 'say', { message }))).toBe(expected)
  })
})

test('a result that does not fit the schema of the tool is delivered, with a note that the call ran', async () => {
  const outputSchema = { type: 'object', properties: { rows: { type: 'integer' } }, required: ['rows'] }
  const server = oddServer(`{
    'tools/list': () => ({ tools: [tool('count', { outputSchema: ${JSON.stringify(outputSchema)} })] }),
    'tools/call': ({ arguments: args }) => ({ content: [{ type: 'text', text: 'forty rows' }], ...args }),
  }`)

  const wrong = await textOf(call(server, 'count', { structuredContent: { rows: 'forty' } }))
  const missing = await textOf(call(server, 'count'))
  const right = await textOf(call(server, 'count', { structuredContent: { rows: 40 } }))

  expect(wrong).toMatch(/^forty rows\n\{"rows":"forty"\}\n\n\[The tool ran\. Its result does not fit/)
  expect(missing).toMatch(/^forty rows\n\n\[The tool ran\. Its result lacks/)
  expect(right).toBe('forty rows\n{"rows":40}')
  await server.close()
})

test('text beside structured content is delivered unless it only repeats it', async () => {
  const server = oddServer(`{
    'tools/list': () => ({ tools: [tool('give')] }),
    'tools/call': ({ arguments: args }) => args,
  }`)
  const given = (texts: readonly string[], structuredContent: unknown): Promise<string> =>
    textOf(
      call(server, 'give', {
        content: texts.map((text) => ({ type: 'text', text })),
        structuredContent,
      } as unknown as JsonObject),
    )

  expect(await given(['Two are stale.', '{ "b": 2, "a": 1 }'], { a: 1, b: 2 })).toBe('Two are stale.\n{"a":1,"b":2}')
  expect(await given(['5'], { result: 5 })).toBe('{"result":5}')
  expect(await given(['one', 'two'], { result: ['one', 'two'] })).toBe('{"result":["one","two"]}')
  await server.close()
})

test.each([
  ['a cursor that does not advance', `({ tools: [tool('a'), tool('b')], nextCursor: 'again' })`, 1],
  ['an empty cursor at the end', `({ tools: [tool('a'), tool('b')], nextCursor: '' })`, 1],
  ['cursors without end', `({ tools: [tool('a'), tool('b')], nextCursor: String(state.n = (state.n ?? 0) + 1) })`, 1],
  ['a null cursor', `({ tools: [tool('a'), tool('b')], nextCursor: null })`, 0],
])('tools of a strange list are kept, each once: %s', async (_name, page, warnings) => {
  const server = oddServer(`{ 'tools/list': () => ${page} }`)
  const host = hostOf()

  expect((await toolsOf(server, host)).map(({ name }) => name)).toEqual(['a', 'b'])
  expect(host.warnings).toHaveLength(warnings)
  await server.close()
})

test('an empty cursor that leads on is followed', async () => {
  const server = oddServer(`{
    'tools/list': ({ cursor }) => (cursor === undefined ? { tools: [tool('a')], nextCursor: '' } : { tools: [tool('b')] }),
  }`)
  const host = hostOf()

  expect((await toolsOf(server, host)).map(({ name }) => name)).toEqual(['a', 'b'])
  expect(host.warnings).toEqual([])
  await server.close()
})

test('answers over HTTP are read beside a server for Node that replaces `Response`', async () => {
  const before = { Request: globalThis.Request, Response: globalThis.Response }
  onTestFinished(() => void Object.assign(globalThis, before))
  getRequestListener(() => new Response())
  const { constructor: own } = await fetch('data:,')
  expect(globalThis.Response).not.toBe(own)
  await using answering = await overHttp(false)
  const message = result({ content: [{ type: 'text', text: 'Rain.' }] })
  expect(await textOf(call(answering.server, 'say', { message }))).toBe('Rain.')
})
