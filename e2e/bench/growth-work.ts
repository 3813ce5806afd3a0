// One curve in a process of its own, with a model in the same process that replies immediately: writes its points as a line of JSON.
import { mkdtempSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineTool, fileLog, Harness, memoryLog } from 'thinharness'
import { mcpStdio } from 'thinharness/mcp'
import { Sessions } from 'thinharness/session'
import { cpuMs, heapBytes } from './work.js'
import type { Model, ToolSpec } from 'thinharness'
import { NO_TOKENS } from './tokens.js'

/** A place on a curve, and the CPU time there in µs (for `waiting` and `waiting-http`, bytes per run). */
export type Points = Readonly<Record<number, number>>

const TURNS = 40
const PARAMETERS = { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] }
const USAGE = { ...NO_TOKENS, inputTokens: 100, outputTokens: 10 }

/** Calls `tool` in each turn of a run but the last of `turns`. Before it replies, it waits for `until`. */
function modelOf(turns: number, tool = 'tool_0', until?: () => Promise<void>): Model {
  return {
    ...{ provider: 'in-process', id: 'bench', capabilities: {} },
    openSession() {
      let turn = 0
      return {
        async turn() {
          await until?.()
          turn += 1
          const isLast = turn === turns
          const call = { type: 'tool_call', callId: `call_${turn}`, name: tool, arguments: '{"id":"a"}' } as const
          const parts = isLast ? [{ type: 'text', text: 'Done.' } as const] : [call]
          const finishReason = isLast ? 'stop' : 'tool_calls'
          return {
            entry: { role: 'assistant', parts, provider: 'in-process', model: 'bench', finishReason, usage: USAGE },
          }
        },
      }
    },
  }
}

function toolOf(index: number): ToolSpec {
  const description = 'Finds one thing by its id, in one of many places.'
  return defineTool({ name: `tool_${index}`, description, parameters: PARAMETERS, handler: () => 'Found.' })
}

/** CPU time of a turn among so many tools. */
async function tools(counts: readonly number[]): Promise<Points> {
  const points: Record<number, number> = {}
  for (const count of counts) {
    const all = Array.from({ length: count }, (_, index) => toolOf(index))
    const harness = new Harness({ model: modelOf(TURNS), builtinTools: [], tools: all })
    points[count] = await costOfTurn(() => harness.run('Go.'))
  }
  return points
}

/** The median of some runs, after others. */
async function costOfTurn(run: () => Promise<unknown>): Promise<number> {
  for (let index = 0; index < 10; index++) await run()
  const costs: number[] = []
  for (let index = 0; index < 11; index++) {
    const before = cpuMs()
    await run()
    costs.push(((cpuMs() - before) / TURNS) * 1000)
  }
  return costs.sort((left, right) => left - right)[5] ?? NaN
}

/** A server over stdio that lists so many tools, in JSON-RPC by hand. */
const SERVER = `
const tools = Array.from({ length: Number(process.argv[2]) }, (_, index) => ({
  name: 'tool_' + index, description: 'Finds one thing by its id, in one of many places.', inputSchema: ${JSON.stringify(PARAMETERS)},
}))
const resultOf = ({ method, params }) => {
  if (method === 'initialize') {
    return { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'many', version: '1' } }
  }
  if (method === 'tools/list') return { tools }
  return method === 'tools/call' ? { content: [{ type: 'text', text: 'Found.' }] } : {}
}
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const request = JSON.parse(line)
  if (request.id === undefined) return
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id: request.id, result: resultOf(request) }) + '\\n')
})
`

/** CPU time of a turn with a call of a server that has so many tools, on this side of the pipe. */
async function mcp(counts: readonly number[]): Promise<Points> {
  const folder = mkdtempSync(join(tmpdir(), 'thinharness-bench-'))
  const points: Record<number, number> = {}
  try {
    const program = join(folder, 'server.cjs')
    writeFileSync(program, SERVER)
    for (const count of counts) {
      const server = mcpStdio({ id: 'many', command: process.execPath, args: [program, String(count)] })
      await using harness = new Harness({ model: modelOf(TURNS), builtinTools: [], mcpServers: [server] })
      points[count] = await costOfTurn(() => harness.run('Go.'))
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return points
}

/** CPU time of a message of a thread, the mean of the last 100 before each place. */
async function thread(places: readonly number[], kind: string): Promise<Points> {
  const folder = mkdtempSync(join(tmpdir(), 'thinharness-bench-'))
  try {
    const log = kind === 'file' ? fileLog(folder) : memoryLog()
    const harness = new Harness({ model: modelOf(1), builtinTools: [], log })
    const sessions = new Sessions({ log, harness })
    const chat = await sessions.open('thread')
    const marks = [cpuMs()]
    for (let message = 1; message <= Math.max(...places); message++) {
      const { status } = await (await chat.send('x'.repeat(400))).done
      if (status !== 'completed') throw new Error(`A message ended as ${status}.`)
      marks.push(cpuMs())
    }
    await sessions.close()
    await harness.close()
    return Object.fromEntries(places.map((at) => [at, (((marks[at] ?? NaN) - (marks[at - 100] ?? NaN)) / 100) * 1000]))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Bytes on the heap of each run that waits for its model, in the same process. */
async function waiting(counts: readonly number[]): Promise<Points> {
  let reply: () => void = () => undefined
  const replied = new Promise<void>((resolve) => (reply = resolve))
  let asked = 0
  const model = modelOf(1, 'tool_0', () => ((asked += 1), replied))
  return weighed(counts, {
    model: () => model,
    isWaiting: (count) => asked === count,
    release: reply,
  })
}

interface Wait {
  readonly model: () => Model | string
  readonly isWaiting: (count: number) => boolean
  readonly release: () => void
}

/** The heap with so many waiting runs, less that before the first, for each run. */
async function weighed(counts: readonly number[], { model, isWaiting, release }: Wait): Promise<Points> {
  const harness = new Harness({ model: model(), builtinTools: [], tools: [toolOf(0)] })
  const points: Record<number, number> = {}
  const runs: Promise<unknown>[] = []
  const until = async (count: number): Promise<void> => {
    while (runs.length < count) runs.push(harness.run('x'.repeat(100)))
    while (!isWaiting(count)) await new Promise((resolve) => setImmediate(resolve))
  }
  // Modules are loaded, and the structures of a harness exist.
  await until(10)
  const before = heapBytes()
  for (const count of counts) {
    await until(count)
    points[count] = (heapBytes() - before) / (count - 10)
  }
  release()
  await Promise.all(runs)
  return points
}

/** The same over HTTP, to a server in the same process: both ends of each connection are on the heap. */
async function waitingHttp(counts: readonly number[]): Promise<Points> {
  const responses: (() => void)[] = []
  const body = JSON.stringify({
    ...{ id: 'resp_1', object: 'response', status: 'completed', model: 'bench' },
    output: [{ type: 'message', id: 'msg_1', role: 'assistant', content: [{ type: 'output_text', text: 'Done.' }] }],
    usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
  })
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      responses.push(() => response.writeHead(200, { 'content-type': 'application/json' }).end(body))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', 2048, () => resolve()))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('Expected an address.')
  process.env['OPENAI_BASE_URL'] = `http://127.0.0.1:${address.port}/v1`
  process.env['OPENAI_API_KEY'] = 'none'
  try {
    return await weighed(counts, {
      model: () => 'openai:bench',
      isWaiting: (count) => responses.length === count,
      release: () => responses.forEach((respond) => respond()),
    })
  } finally {
    server.close().closeAllConnections()
  }
}

const [kind = '', places = '[]'] = process.argv.slice(2)
const at = JSON.parse(places) as readonly number[]
const KINDS: Readonly<Record<string, () => Promise<Points>>> = {
  tools: () => tools(at),
  mcp: () => mcp(at),
  'thread-memory': () => thread(at, 'memory'),
  'thread-file': () => thread(at, 'file'),
  waiting: () => waiting(at),
  'waiting-http': () => waitingHttp(at),
}
writeSync(1, `${JSON.stringify(await KINDS[kind]?.())}\n`)
process.exit()
