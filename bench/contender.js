// One contender in a process of its own: does what it is told by its argument, and writes what it took as a line of JSON.
import { writeSync } from 'node:fs'
import { answerOf, cpuMs, heapBytes, makeTool, promptOf } from './work.js'

/** @typedef {import('./work.js').Contender} Contender */
/** @typedef {import('./work.js').Work} Work */

/**
 * @typedef {object} Job
 * @property {string} contender
 * @property {string} baseUrl
 * @property {Work} work
 */

/** Loaded when chosen: what the others load is not measured. */
const CONTENDERS = {
  fetch: async () => (await import('./contenders/fetch.js')).open,
  careful: async () => (await import('./contenders/careful.js')).open,
  client: async () => (await import('./contenders/client.js')).open,
  thinharness: async () => (await import('./contenders/thinharness.js')).open,
  'thinharness, batches': async () => (await import('./contenders/thinharness.js')).openBatches,
  'run, no HTTP': async () => (await import('./contenders/in-process.js')).openRun,
  'stream, no HTTP': async () => (await import('./contenders/in-process.js')).openStream,
  'file log, fsync never': async () => (await import('./contenders/in-process.js')).openFileLog('never'),
  'file log, fsync interval': async () => (await import('./contenders/in-process.js')).openFileLog('interval'),
  'file log, fsync always': async () => (await import('./contenders/in-process.js')).openFileLog('always'),
  'SQLite, synchronous normal': async () => (await import('./contenders/in-process.js')).openSqliteLog('normal'),
  'SQLite, synchronous full': async () => (await import('./contenders/in-process.js')).openSqliteLog('full'),
  PostgreSQL: async () =>
    (await import('./contenders/in-process.js')).openPostgresLog(process.env['BENCH_POSTGRES_URL'] ?? ''),
  nothing: undefined,
  "import 'thinharness'": () => load('thinharness'),
  "import 'thinharness/providers'": () => load('thinharness/providers'),
  "import 'openai'": () => load('openai'),
}

/** @param {string} name */
async function load(name) {
  await import(name)
}

/** @param {Job} job @returns {Promise<import('./work.js').Report>} */
async function perform({ contender, baseUrl, work }) {
  const open = await CONTENDERS[/** @type {keyof typeof CONTENDERS} */ (contender)]?.()
  if (open === undefined) return report(NOTHING, NOTHING, { deltas: 0, heldKb: 0, payloadKb: 0, marks: [] })
  const tool = makeTool(work)
  const opened = open({ baseUrl, tool })
  await runAll(opened, { ...work, runs: work.warmUp ?? 0 }, 'w')
  const heldBefore = work.warmUp === undefined ? 0 : heapBytes()
  const before = now()
  tool.marks.length = 0
  const deltas = await runAll(opened, work, 'r')
  return report(before, now(), {
    deltas,
    heldKb: tool.held === 0 ? 0 : (tool.held - heldBefore) / 1000,
    payloadKb: (opened.payload?.() ?? 0) / 1000,
    marks: tool.marks.slice(-(work.turns - 1) * (work.calls ?? 1)),
  })
}

/** @param {Contender} contender @param {Work} work @param {string} name */
async function runAll(contender, work, name) {
  const { runs, turns, calls = 1, argumentChars = 10 } = work
  const expected = answerOf(work.deltas ?? 1)
  let deltas = 0
  let chars = 0
  const onDelta = (/** @type {string} */ text) => {
    deltas += 1
    chars += text.length
  }
  /** @param {number} index */
  const runOne = async (index) => {
    const prompt = promptOf(`p${process.pid}${name}${index}`, work)
    const text = work.streamed === true ? await contender.listen(prompt, onDelta) : await contender.ask(prompt)
    if (text !== expected) throw new Error(`Expected another answer, got \`${text.slice(0, 200)}\`.`)
  }
  if (work.together === true) await Promise.all(Array.from({ length: runs }, (_, index) => runOne(index)))
  else for (let index = 0; index < runs; index++) await runOne(index)
  const told = runs * (expected.length + (turns - 1) * calls * (argumentChars + '{"id":""}'.length))
  if (work.streamed === true && chars !== told) throw new Error(`Expected ${told} characters of deltas, got ${chars}.`)
  return deltas
}

const NOTHING = { cpu: 0, wall: 0, peak: 0 }

/** Not by `performance`: its first use loads a module. */
function now() {
  return { cpu: cpuMs(), wall: Number(process.hrtime.bigint()) / 1e6, peak: process.resourceUsage().maxRSS }
}

/**
 * @param {ReturnType<typeof now>} before @param {ReturnType<typeof now>} after
 * @param {Pick<import('./work.js').Report, 'deltas' | 'heldKb' | 'payloadKb' | 'marks'>} noted
 */
function report(before, after, noted) {
  return {
    cpuMs: after.cpu - before.cpu,
    wallMs: after.wall - before.wall,
    processCpuMs: cpuMs(),
    peakMb: process.resourceUsage().maxRSS / 1024,
    grownKb: after.peak - before.peak,
    ...noted,
  }
}

const result = await perform(JSON.parse(process.argv[2] ?? ''))
writeSync(1, `${JSON.stringify(result)}\n`)
// Kept connections are nobody's business any more.
process.exit()
