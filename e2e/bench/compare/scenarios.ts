// The work of the comparison: the Responses API, a tool with a zod schema (pi has schemas of its own), and default options.
import { CPU, CPU_A_TURN, PROCESS_CPU, WALL } from '../measures.js'
import { importOf } from './contenders.js'
import { PEERS } from './peers.js'
import type { Measure } from '../measures.js'
import type { Scenario } from '../scenarios.js'

/** A column of the table. */
export interface Column {
  readonly title: string
  readonly contender: string
  /** The contender that only imports its modules. */
  readonly importer: string
}

/** Ratios are to the first. */
export const COLUMNS: readonly Column[] = [
  { title: 'fetch', contender: 'fetch, Responses', importer: 'nothing' },
  { title: 'careful', contender: 'careful, Responses', importer: 'nothing' },
  { title: 'client', contender: 'client, Responses', importer: "import 'openai'" },
  { title: 'thinharness', contender: 'thinharness, Responses', importer: "import 'thinharness'" },
  ...PEERS.map(({ name }) => ({ title: name, contender: name, importer: importOf(name) })),
]

export const OURS = 'thinharness'
/** Loops that are written by hand: they are no library. */
export const LOOPS = ['fetch', 'careful']

/** A warm process has had this many runs of 20 turns: the same work for each, however much of it one needs. */
const WARM_RUNS = 20

const MEMORY: Measure = { title: 'memory per run', unit: 'KB', of: ({ grownKb }, { runs }) => grownKb / runs }

const CPU_A_CALL: Measure = {
  title: 'CPU per tool call',
  unit: 'ms',
  of: ({ cpuMs }, { runs, turns, calls = 1 }) => cpuMs / (runs * (turns - 1) * calls),
}

const CPU_A_DELTA: Measure = {
  title: 'CPU per delta',
  unit: 'µs',
  of: ({ cpuMs, deltas }) => (cpuMs / deltas) * 1000,
}

const CPU_ABOVE_NODE: Measure = {
  title: 'CPU above bare Node',
  unit: 'ms',
  of: ({ processCpuMs }, _, round) => processCpuMs - round('nothing').processCpuMs,
}

const contenders = COLUMNS.map(({ contender }) => contender)

const SCENARIOS: readonly Scenario[] = [
  { name: 'turns', title: '20 turns', work: { warmUp: 1, runs: 1, turns: 20 }, measures: [CPU_A_TURN] },
  {
    name: 'turns-warm',
    title: '20 turns, warm',
    work: { warmUp: WARM_RUNS, runs: 5, turns: 20 },
    measures: [CPU_A_TURN],
  },
  {
    name: 'streamed',
    title: '20 turns, streamed',
    work: { warmUp: 1, runs: 1, turns: 20, streamed: true },
    measures: [CPU_A_TURN],
  },
  {
    name: 'streamed-warm',
    title: '20 turns, streamed, warm',
    work: { warmUp: WARM_RUNS, runs: 5, turns: 20, streamed: true },
    measures: [CPU_A_TURN],
  },
  {
    name: 'turns-200',
    title: '200 turns of 1 KiB',
    work: { warmUp: 1, runs: 1, turns: 200, resultChars: 1024 },
    measures: [CPU],
  },
  {
    name: 'runs-200',
    title: '200 concurrent runs of 5 turns, 50 ms latency',
    work: { warmUp: 5, runs: 200, turns: 5, latencyMs: 50, resultChars: 1024, together: true },
    measures: [WALL, MEMORY],
  },
  {
    name: 'tools-8',
    title: '8 concurrent tools',
    work: { warmUp: 1, runs: 1, turns: 20, calls: 8, toolMs: 20 },
    measures: [CPU_A_CALL],
  },
  {
    name: 'deltas',
    title: '20,000 text deltas',
    work: { warmUp: 1, runs: 1, turns: 1, deltas: 20_000, streamed: true },
    measures: [CPU_A_DELTA],
  },
  {
    name: 'first-answer',
    title: 'First answer of a fresh process',
    work: { runs: 1, turns: 2 },
    measures: [PROCESS_CPU],
  },
].map((scenario) => ({ ...scenario, contenders }))

export const COMPARISON: readonly Scenario[] = [
  ...SCENARIOS,
  {
    name: 'import',
    title: 'Import',
    contenders: ['nothing', ...COLUMNS.slice(LOOPS.length).map(({ importer }) => importer)],
    work: { runs: 0, turns: 0 },
    measures: [CPU_ABOVE_NODE],
  },
]
