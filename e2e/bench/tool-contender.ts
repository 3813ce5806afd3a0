// One contender of the benchmark of the tools, in a process of its own: does the work of its argument and writes its
// measurements as a line of JSON.
import { spawn } from 'node:child_process'
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import type { JsonObject, ToolContext } from 'thinharness'

export interface ToolJob {
  readonly contender: string
  readonly root: string
  readonly args: Readonly<Record<string, unknown>>
}

export interface ToolReport {
  readonly ms: number
  readonly cpuMs: number
  readonly peakMb: number
  readonly found: string
}

/** The fields that are read of a row. */
interface Row {
  readonly id: number
  readonly status: string
  readonly total: number
  readonly customer: { readonly name: string }
}

async function ripgrep(program: string, args: readonly string[]): Promise<string> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'ignore'] })
  let lines = 0
  child.stdout.on('data', (piece: Buffer) => {
    for (let at = piece.indexOf(10); at >= 0; at = piece.indexOf(10, at + 1)) lines++
  })
  await new Promise((resolve) => child.once('close', resolve))
  return `${lines} lines`
}

/** The loop that one writes by hand: each line is read, parsed, filtered and projected. */
async function rowsByHand(file: string): Promise<string> {
  const rows = []
  for await (const line of createInterface({ input: createReadStream(file), crlfDelay: Infinity })) {
    const row = JSON.parse(line) as Row
    if (row.status !== 'late' || !(row.total > 900)) continue
    rows.push({ id: row.id, name: row.customer.name })
  }
  return `${rows.length} rows`
}

async function useTool(name: string, { root, args }: ToolJob) {
  const { fileTools, jsonlSearch } = await import('thinharness/tools')
  const engine = name === 'search, own engine' ? { ripgrep: false as const } : {}
  const tools = [
    ...fileTools({ root, searchTimeoutMs: 300_000, ...engine }),
    jsonlSearch({ root, searchTimeoutMs: 300_000 }),
  ]
  const tool = tools.find((each) => each.name === name.split(',')[0])
  if (tool === undefined) throw new Error(`There is no tool \`${name}\`.`)
  return async () => {
    const outcome = await tool.call(args as JsonObject, contextOf(root))
    if (outcome.kind !== 'succeeded') throw new Error(JSON.stringify(outcome))
    return JSON.stringify(outcome.metadata)
  }
}

function contextOf(root: string): ToolContext {
  const { signal } = new AbortController()
  const impossible = (): never => {
    throw new Error('There is no run here.')
  }
  return {
    runId: 'r',
    callId: 'c',
    toolName: 't',
    root,
    depth: 0,
    idempotencyKey: 'k',
    metadata: {},
    deps: undefined,
    signal,
    progress: () => undefined,
    ask: impossible,
    decide: impossible,
    spawn: impossible,
  }
}

async function workOf(job: ToolJob): Promise<() => Promise<string>> {
  const { contender, args } = job
  if (contender === 'ripgrep by hand') {
    const { rgPath } = await import('@vscode/ripgrep')
    return () => ripgrep(rgPath, args['command'] as string[])
  }
  if (contender === 'a loop by hand') return () => rowsByHand(String(args['file']))
  return useTool(contender, job)
}

const job = JSON.parse(process.argv[2] ?? '{}') as ToolJob
const work = await workOf(job)
const start = performance.now()
const before = process.cpuUsage()
const found = await work()
const { user, system } = process.cpuUsage(before)
const took = { ms: performance.now() - start, cpuMs: (user + system) / 1000 }
process.stdout.write(`${JSON.stringify({ ...took, peakMb: process.resourceUsage().maxRSS / 1024, found })}\n`)
