// One contender in a process of its own: does the work of its argument, and writes its measurements as a line of JSON.
import { writeSync } from 'node:fs'
import { answerOf, cpuMs, heapBytes, makeTool, promptOf } from './work.js'
import type { Contender, Open, Report, Work } from './work.js'

export interface Job {
  readonly contender: string
  readonly baseUrl: string
  readonly work: Work
}

/** Resolves to nothing if only the imports are measured. */
export type Opening = () => Promise<Open | undefined>

/** Each is loaded when it is chosen: modules of the others are not measured. */
const CONTENDERS: Readonly<Record<string, Opening | undefined>> = {
  fetch: async () => (await import('./contenders/fetch.js')).open,
  careful: async () => (await import('./contenders/careful.js')).open,
  client: async () => (await import('./contenders/client.js')).open,
  thinharness: () => ours('open'),
  'thinharness, batches': () => ours('openBatches'),
  'thinharness, a harness per run': () => ours('openHarnessARun'),
  'thinharness, without zod': async () => {
    const { open, withoutZod } = await import('./contenders/thinharness.js')
    return withoutZod(open)
  },
  'new Harness': () => ours('openNewHarness'),
  'run, no HTTP': async () => (await import('./contenders/in-process.js')).openRun,
  'fallback, no HTTP': async () => {
    const [{ openRouted }, { fallback }] = await Promise.all([
      import('./contenders/in-process.js'),
      import('thinharness/models'),
    ])
    return openRouted((model) => fallback([model, 'openai:gpt-4.1']))
  },
  'route, no HTTP': async () => {
    const [{ openRouted }, { route }] = await Promise.all([
      import('./contenders/in-process.js'),
      import('thinharness/models'),
    ])
    return openRouted((model) => route({ main: model, summarise: 'openai:gpt-4.1' }))
  },
  'stream, no HTTP': async () => (await import('./contenders/in-process.js')).openStream,
  'file log, fsync never': async () => (await import('./contenders/in-process.js')).openFileLog('never'),
  'file log, fsync interval': async () => (await import('./contenders/in-process.js')).openFileLog('interval'),
  'file log, fsync always': async () => (await import('./contenders/in-process.js')).openFileLog('always'),
  'SQLite, synchronous normal': async () => (await import('./contenders/in-process.js')).openSqliteLog('normal'),
  'SQLite, synchronous full': async () => (await import('./contenders/in-process.js')).openSqliteLog('full'),
  PostgreSQL: async () =>
    (await import('./contenders/in-process.js')).openPostgresLog(process.env['BENCH_POSTGRES_URL'] ?? ''),
  nothing: async () => undefined,
  "import 'thinharness'": () => load('thinharness'),
  "import 'thinharness/providers'": () => load('thinharness/providers'),
  "import 'openai'": () => load('openai'),
}

async function ours(name: 'open' | 'openBatches' | 'openHarnessARun' | 'openNewHarness'): Promise<Open> {
  const module = await import('./contenders/thinharness.js')
  return module.withZod(module[name])
}

async function load(name: string): Promise<undefined> {
  await import(name)
}

async function perform({ contender, baseUrl, work }: Job): Promise<Report> {
  const opening = CONTENDERS[contender] ?? (await import('./compare/contenders.js')).PEER_CONTENDERS[contender]
  if (opening === undefined) throw new RangeError(`Unknown contender \`${contender}\`.`)
  const open = await opening()
  if (open === undefined) return report(NOTHING, NOTHING, { runs: 0, deltas: 0, heldKb: 0, payloadKb: 0, marks: [] })
  const tool = makeTool(work)
  const opened = open({ baseUrl, tool })
  await runAll(opened, { ...work, runs: work.warmUp ?? 0, leastCpuMs: work.warmUpCpuMs ?? 0 }, 'w')
  // Also throws away optimized code of what ran so far.
  const heldBefore = heapBytes()
  const before = now()
  tool.marks.length = 0
  const { runs, deltas } = await runAll(opened, work, 'r')
  return report(before, now(), {
    runs,
    deltas,
    heldKb: tool.held === 0 ? 0 : (tool.held - heldBefore) / 1000,
    payloadKb: (opened.payload?.() ?? 0) / 1000,
    marks: tool.marks.slice(-(work.turns - 1) * (work.calls ?? 1)),
  })
}

async function runAll(contender: Contender, work: Work, name: string): Promise<{ runs: number; deltas: number }> {
  const { runs, turns, leastCpuMs = 0, calls = 1, argumentChars = 10 } = work
  const expected = answerOf(work.deltas ?? 1)
  let [made, deltas, chars] = [0, 0, 0]
  const onDelta = (text: string): void => {
    deltas += 1
    chars += text.length
  }
  const runOne = async (): Promise<void> => {
    const prompt = promptOf(`p${process.pid}${name}${made++}`, work)
    const text = work.streamed === true ? await contender.listen(prompt, onDelta) : await contender.ask(prompt)
    if (text !== expected) throw new Error(`Expected another answer, got \`${text.slice(0, 200)}\`.`)
  }
  const end = cpuMs() + leastCpuMs
  if (work.together === true) await Promise.all(Array.from({ length: runs }, runOne))
  else while (made < runs || cpuMs() < end) await runOne()
  const expectedChars = made * (expected.length + (turns - 1) * calls * (argumentChars + '{"id":""}'.length))
  if (work.streamed === true && chars !== expectedChars)
    throw new Error(`Expected ${expectedChars} characters of deltas, got ${chars}.`)
  return { runs: made, deltas }
}

/** Of a process, in ms and KB. */
interface Moment {
  readonly cpu: number
  readonly wall: number
  readonly resident: number
  readonly peak: number
}

const NOTHING: Moment = { cpu: 0, wall: 0, resident: 0, peak: 0 }

/** Not by `performance`: its first use loads a module. */
function now(): Moment {
  const resident = process.memoryUsage.rss() / 1024
  const peak = process.resourceUsage().maxRSS
  return { cpu: cpuMs(), wall: Number(process.hrtime.bigint()) / 1e6, resident, peak }
}

type Noted = Pick<Report, 'runs' | 'deltas' | 'heldKb' | 'payloadKb' | 'marks'>

function report(before: Moment, after: Moment, noted: Noted): Report {
  return {
    cpuMs: after.cpu - before.cpu,
    wallMs: after.wall - before.wall,
    processCpuMs: cpuMs(),
    peakMb: process.resourceUsage().maxRSS / 1024,
    grownKb: after.peak - before.resident,
    ...noted,
  }
}

const result = await perform(JSON.parse(process.argv[2] ?? '') as Job)
writeSync(1, `${JSON.stringify(result)}\n`)
// Does not wait for kept connections.
process.exit()
