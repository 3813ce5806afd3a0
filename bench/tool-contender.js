// One contender of the benchmark of the tools, in a process of its own: does what its argument says and writes what it took
// as a line of JSON.
import { spawn } from 'node:child_process'
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'

/** @typedef {{ contender: string, root: string, args: Record<string, unknown> }} ToolJob */
/** @typedef {{ ms: number, cpuMs: number, peakMb: number, found: string }} ToolReport */

/** @param {string} program @param {readonly string[]} args */
async function ripgrep(program, args) {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'ignore'] })
  let lines = 0
  child.stdout.on('data', (/** @type {Buffer} */ piece) => {
    for (let at = piece.indexOf(10); at >= 0; at = piece.indexOf(10, at + 1)) lines++
  })
  await new Promise((resolve) => child.once('close', resolve))
  return `${lines} lines`
}

/** The loop that one writes by hand: each line is read, parsed, filtered and projected. @param {string} file */
async function rowsByHand(file) {
  const rows = []
  for await (const line of createInterface({ input: createReadStream(file), crlfDelay: Infinity })) {
    const row = JSON.parse(line)
    if (row.status !== 'late' || !(row.total > 900)) continue
    rows.push({ id: row.id, name: row.customer.name })
  }
  return `${rows.length} rows`
}

/** @param {string} name @param {ToolJob} job */
async function useTool(name, { root, args }) {
  const { fileTools, jsonlSearch } = await import('thinharness/tools')
  const engine = name === 'search, own engine' ? { ripgrep: /** @type {const} */ (false) } : {}
  const tools = [
    ...fileTools({ root, searchTimeoutMs: 300_000, ...engine }),
    jsonlSearch({ root, searchTimeoutMs: 300_000 }),
  ]
  const tool = tools.find((each) => each.name === name.split(',')[0])
  if (tool === undefined) throw new Error(`There is no tool \`${name}\`.`)
  return async () => {
    const outcome = await tool.call(/** @type {any} */ (args), contextOf(root))
    if (outcome.kind !== 'succeeded') throw new Error(JSON.stringify(outcome))
    return JSON.stringify(outcome.metadata)
  }
}

/** @param {string} root @returns {any} */
function contextOf(root) {
  const signal = new AbortController().signal
  return {
    runId: 'r',
    callId: 'c',
    toolName: 't',
    root,
    depth: 0,
    idempotencyKey: 'k',
    metadata: {},
    signal,
    progress: () => undefined,
  }
}

/** @param {ToolJob} job @returns {Promise<() => Promise<string>>} */
async function workOf(job) {
  const { contender, args } = job
  if (contender === 'ripgrep by hand') {
    const { rgPath } = await import('@vscode/ripgrep')
    return () => ripgrep(rgPath, /** @type {string[]} */ (args['command']))
  }
  if (contender === 'a loop by hand') return () => rowsByHand(String(args['file']))
  return useTool(contender, job)
}

const job = /** @type {ToolJob} */ (JSON.parse(process.argv[2] ?? '{}'))
const work = await workOf(job)
const start = performance.now()
const before = process.cpuUsage()
const found = await work()
const { user, system } = process.cpuUsage(before)
const took = { ms: performance.now() - start, cpuMs: (user + system) / 1000 }
process.stdout.write(`${JSON.stringify({ ...took, peakMb: process.resourceUsage().maxRSS / 1024, found })}\n`)
