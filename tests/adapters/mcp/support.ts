import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { JsonObject, ToolContext, ToolOutcome, ToolSpec } from 'thinharness'
import { mcpStdio } from '#adapters/mcp/index.js'
import { serverEnvironment } from '#adapters/mcp/client/server-environment.js'
import type { McpServer, McpStdioOptions } from '#adapters/mcp/index.js'
import type { ToolSourceHost } from '#core/tools/tool-source.js'
import { freePort } from '../../support/process.js'

/** The program of a server from npm. */
function programOf(name: string): string {
  return fileURLToPath(
    new URL(`../../../node_modules/@modelcontextprotocol/server-${name}/dist/index.js`, import.meta.url),
  )
}

/** A server from npm, over stdio. */
export function npmServer(
  name: string,
  args: readonly string[] = [],
  options: Partial<McpStdioOptions> = {},
): McpServer {
  return mcpStdio({ id: name, command: process.execPath, args: [programOf(name), ...args], ...options })
}

/** server-everything as a server of HTTP on this machine. */
export async function startedEverything(
  transport: 'streamableHttp' | 'sse',
): Promise<AsyncDisposable & { readonly origin: string }> {
  const port = await freePort()
  const env = { ...serverEnvironment({}), PORT: String(port) }
  const child = spawn(process.execPath, [programOf('everything'), transport], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  await new Promise<void>((resolve, reject) => {
    const hear = (piece: Buffer): void => {
      if (/listening|running|port/i.test(piece.toString())) resolve()
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.on('exit', (code) => reject(new Error(`server-everything ended with ${String(code)}`)))
  })
  const end = async (): Promise<void> => {
    const ended = once(child, 'exit')
    if (child.kill('SIGKILL')) await ended
  }
  return { origin: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: end }
}

/** A host that remembers what it was told. */
export function hostOf(beside: Partial<ToolSourceHost> = {}): ToolSourceHost & { readonly warnings: string[] } {
  const warnings: string[] = []
  return { roots: [], ...beside, warnings, warn: (message) => void warnings.push(message) }
}

/** A signal that is never aborted. */
export function calm(): AbortSignal {
  return new AbortController().signal
}

export async function toolsOf(server: McpServer, host: ToolSourceHost = hostOf()): Promise<readonly ToolSpec[]> {
  return await server.tools(host, calm())
}

export async function toolNamed(server: McpServer, name: string, host?: ToolSourceHost): Promise<ToolSpec> {
  const tools = await toolsOf(server, host)
  const tool = tools.find((each) => each.name === name)
  if (tool === undefined) throw new Error(`No tool ${name} among ${tools.map((each) => each.name).join(', ')}.`)
  return tool
}

/** Thrown in place of a pause, with what the person is asked. */
export class Paused extends Error {
  readonly payload: unknown
  readonly key: string

  constructor(payload: unknown, key = '') {
    super('paused')
    this.payload = payload
    this.key = key
  }
}

/** A context's `ask` that knows answers by the key of their question. */
export function answering(answers: Readonly<Record<string, unknown>>): Pick<ToolContext, 'ask'> {
  const ask = async (payload: unknown, _schema: unknown, { key = '' }: { key?: string | undefined } = {}) => {
    if (!(key in answers)) throw new Paused(payload, key)
    return answers[key]
  }
  return { ask: ask as ToolContext['ask'] }
}

/** A call's context outside a run. */
export function contextOf(beside: Partial<ToolContext> = {}): ToolContext {
  return {
    runId: 'run_1',
    callId: 'call_1',
    toolName: 'tool',
    root: '.',
    depth: 0,
    idempotencyKey: 'run_1:call_1',
    metadata: {},
    deps: undefined,
    signal: calm(),
    progress: () => undefined,
    ...answering({}),
    decide: () => Promise.reject(new Error('There is no model.')),
    spawn: () => {
      throw new Error('no child runs here')
    },
    ...beside,
  }
}

/** Calls a server's tool, as a run would. */
export async function call(
  server: McpServer,
  name: string,
  args: JsonObject = {},
  beside: Partial<ToolContext> = {},
): Promise<ToolOutcome> {
  return await (await toolNamed(server, name)).call(args, contextOf(beside))
}

/** The text that a model reads of a result. */
export async function textOf(outcome: Promise<ToolOutcome>): Promise<string> {
  const ended = await outcome
  return ended.kind === 'succeeded' || ended.kind === 'failed' ? ended.content : ended.kind
}

/**
 * A server of an older revision, as a process, without any SDK. `handlers` is JavaScript: an object of functions by method
 * that get `(params, message)` and may use `reply(id, result)`, `raw(text)`, `ask(method, params)`, `notify(method, params)` and `state`.
 */
export function oddServer(handlers: string, options: Partial<McpStdioOptions> = {}): McpServer {
  return mcpStdio({ id: 'odd', ...oddCommand(handlers), ...options })
}

export function oddCommand(handlers: string): { readonly command: string; readonly args: readonly string[] } {
  return { command: process.execPath, args: ['-e', PROGRAM.replace('HANDLERS', () => handlers)] }
}

const PROGRAM = `
const state = {}
const waiting = new Map()
let asked = 0
const raw = (text) => process.stdout.write(text)
const send = (message) => raw(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
const reply = (id, result) => send({ id, result })
const notify = (method, params = {}) => send({ method, params })
const ask = (method, params) => new Promise((resolve) => {
  const id = 'ask-' + ++asked
  waiting.set(id, resolve)
  send({ id, method, params })
})
const text = (value) => ({ content: [{ type: 'text', text: String(value) }] })
const tool = (name, more = {}) => ({ name, inputSchema: { type: 'object' }, ...more })
const handlers = HANDLERS
const builtIn = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: { listChanged: true } },
    serverInfo: { name: 'odd', version: '1' },
  }),
}
let buffer = ''
process.stdin.setEncoding('utf8')
process.stdin.on('end', () => process.exit(0))
process.stdin.on('data', async (piece) => {
  buffer += piece
  const lines = buffer.split('\\n')
  buffer = lines.pop()
  for (const line of lines) {
    const message = JSON.parse(line)
    const { id, method, params = {} } = message
    if (method === undefined) { waiting.get(id)?.(message.result ?? message.error); waiting.delete(id); continue }
    const handler = handlers[method] ?? builtIn[method]
    if (id === undefined) { handler?.(params, message); continue }
    if (!handler) { send({ id, error: { code: -32601, message: 'unknown method' } }); continue }
    Promise.resolve(handler(params, message)).then((result) => { if (result !== undefined) reply(id, result) })
  }
})
`
