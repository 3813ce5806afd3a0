import { once } from 'node:events'
import { createServer } from 'node:http'
import type { ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { Harness } from 'thinharness'
import type { JsonObject } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { mcpHttp } from '#adapters/mcp/index.js'
import type { McpServer } from '#adapters/mcp/index.js'
import { oddServer } from '../support.js'

type Fault = 'killed' | 'hangs' | 'floods' | 'invalid JSON' | 'no result'

/** Answers a call by its argument `fault`; without one, well. */
function oddProcess(fault: Fault): McpServer {
  return oddServer(
    `{
      'tools/list': () => ({ tools: [tool('work')] }),
      'tools/call': ({ arguments: { fault } }, { id }) => {
        const more = () => { while (raw('x'.repeat(1 << 20))); process.stdout.once('drain', more) }
        switch (fault) {
          case 'killed': return void process.kill(process.pid, 'SIGKILL')
          case 'hangs': return
          case 'floods': return more()
          case 'invalid JSON': return raw('{"jsonrpc":"2.0","id":' + id + ',"result":{\\n')
          case 'no result': return { nothing: true }
          default: return text('done')
        }
      },
    }`,
    timesOf(fault),
  )
}

/** What ends by itself has the time for it. */
function timesOf(fault: Fault): { readonly timeouts: { readonly connectMs: number; readonly callMs: number } } {
  const isSilent = fault === 'hangs' || fault === 'invalid JSON'
  return { timeouts: { connectMs: 10_000, callMs: isSilent ? 600 : 20_000 } }
}

/** The same over streamable HTTP. */
async function oddHttp(fault: Fault, asEvents: boolean): Promise<AsyncDisposable & { readonly server: McpServer }> {
  const http = createServer((request, response) => {
    void (async () => {
      let body = ''
      for await (const piece of request) body += String(piece)
      if (request.method === 'POST') answer(JSON.parse(body) as JsonObject, response, asEvents)
      else response.writeHead(405).end()
    })()
  })
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  const { port } = http.address() as AddressInfo
  return {
    server: mcpHttp({ id: 'odd', url: `http://127.0.0.1:${port}/mcp`, ...timesOf(fault) }),
    [Symbol.asyncDispose]: async () => {
      http.closeAllConnections()
      await new Promise<void>((resolve) => http.close(() => resolve()))
    },
  }
}

function answer({ id, method, params }: JsonObject, response: ServerResponse, asEvents: boolean): void {
  if (id === undefined) return void response.writeHead(202).end()
  const reply = (member: JsonObject): void => {
    const text = JSON.stringify({ jsonrpc: '2.0', id, ...member })
    response.end(asEvents ? `event: message\ndata: ${text}\n\n` : text)
  }
  const send = (result: JsonObject): void => reply({ result })
  const { protocolVersion, arguments: args } = (params ?? {}) as JsonObject
  const head = { 'content-type': asEvents ? 'text/event-stream' : 'application/json' }
  response.writeHead(200, head)
  switch (method as string) {
    case 'initialize':
      return send({ protocolVersion: protocolVersion ?? '', capabilities: { tools: {} }, serverInfo: SERVER_INFO })
    case 'tools/list':
      return send({ tools: [{ name: 'work', inputSchema: { type: 'object' } }] })
    case 'tools/call':
      return fail((args as { fault?: Fault }).fault, response, { asEvents, send })
    default:
      return reply({ error: { code: -32601, message: 'unknown method' } })
  }
}

const SERVER_INFO = { name: 'odd', version: '1' }

function fail(
  fault: Fault | undefined,
  response: ServerResponse,
  { asEvents, send }: { readonly asEvents: boolean; readonly send: (result: JsonObject) => void },
): void {
  switch (fault) {
    case 'killed':
      response.flushHeaders()
      setImmediate(() => response.destroy())
      return
    case 'hangs':
      return response.flushHeaders()
    case 'floods': {
      if (asEvents) response.write('data: ')
      const more = (): void => {
        let goesOn = !response.destroyed
        while (goesOn) goesOn = response.write('x'.repeat(1 << 20)) && !response.destroyed
        response.once('drain', more)
      }
      return more()
    }
    case 'invalid JSON':
      return void response.end(asEvents ? 'data: {"half": \n\n' : '{"half": ')
    case 'no result':
      return send({ nothing: true })
    case undefined:
      return send({ content: [{ type: 'text', text: 'done' }] })
  }
}

describe.each<[string, (fault: Fault) => Promise<AsyncDisposable & { readonly server: McpServer }>]>([
  ['stdio', async (fault) => ({ server: oddProcess(fault), [Symbol.asyncDispose]: async () => undefined })],
  ['streamable HTTP, as JSON', (fault) => oddHttp(fault, false)],
  ['streamable HTTP, as events', (fault) => oddHttp(fault, true)],
])('over %s', (_transport, make) => {
  test.each<Fault>(['killed', 'hangs', 'floods', 'invalid JSON', 'no result'])(
    'MC-05 a server that fails in a call yields a short, clear result, and the run continues: %s',
    async (fault) => {
      await using odd = await make(fault)
      const model = new ScriptedModel().calls('work', { fault }).calls('work', {}).says('Done.')
      await using harness = new Harness({ model, builtinTools: [], mcpServers: [odd.server] })
      const begun = performance.now()

      const { text, toolCallRecords } = await harness.run('Work.')

      expect(text).toBe('Done.')
      // Long before the time of a call is up, where the server's end can be seen.
      expect(performance.now() - begun).toBeLessThan(45_000)
      const [failed, done] = model.heard.flatMap((heard) => (heard.kind === 'tool_outputs' ? heard.outputs : []))
      expect(done).toMatchObject({ ok: true, content: 'done' })
      if (fault === 'no result') expect(failed).toMatchObject({ content: expect.stringMatching(/\w/) as unknown })
      else expect(failed).toMatchObject({ ok: false })
      const envelope = JSON.parse(toolCallRecords[0]?.output ?? '') as unknown
      const metadata = { mcp_server_id: 'odd', ...(fault !== 'no result' && { error_type: 'MCPError' }) }
      expect(envelope).toMatchObject({ metadata })
      expect(toolCallRecords[0]?.output.length).toBeLessThan(2_000)
      expect(toolCallRecords[0]?.output).not.toMatch(/\n\s+at |node:internal/)
    },
    30_000,
  )
})
