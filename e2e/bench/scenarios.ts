// The measurements and their goals. The goals are ratios to the loop that one writes by hand with `fetch`, in
// the same round, or plain numbers.
import {
  ABOVE_CAREFUL,
  CPU,
  CPU_A_TURN,
  CPU_BESIDE_CAREFUL,
  EVENTS,
  EVENTS_BESIDE_CAREFUL,
  GROWTH,
  PEAK,
  PROCESS_CPU,
  WALL,
  WALL_A_TURN,
  goal,
} from './measures.js'
import { LOOP_SCENARIOS } from './loop-scenarios.js'
import { RESPONSES_SCENARIOS } from './responses-scenarios.js'
import type { Measure } from './measures.js'
import type { Report, Work } from './work.js'

export interface Scenario {
  /** For `--only`. */
  readonly name: string
  readonly title: string
  /** In the order in which they run; ratios are to the first. */
  readonly contenders: readonly string[]
  readonly work: Work
  readonly measures: readonly Measure[]
  /** Left out by `--quick`, and at most 3 rounds. */
  readonly isLong?: boolean
}

const LOOPS = ['fetch', 'careful', 'client', 'thinharness']
const STREAMS = [...LOOPS, 'thinharness, batches']
const isNode24 = Number(process.versions.node.split('.')[0]) >= 24

export const SCENARIOS: readonly Scenario[] = [
  {
    name: 'turns-20',
    title: 'A run of 20 turns',
    contenders: LOOPS,
    work: { warmUp: 1, runs: 1, turns: 20 },
    measures: [
      goal(CPU_A_TURN, { thinharness: { mostTimes: isNode24 ? 0.65 : 0.5 } }),
      ABOVE_CAREFUL,
      WALL_A_TURN,
      goal(PEAK, { thinharness: { most: 65 } }),
    ],
  },
  {
    name: 'turns-20-streamed',
    title: 'A run of 20 turns, streamed',
    contenders: STREAMS,
    work: { warmUp: 1, runs: 1, turns: 20, streamed: true },
    measures: [
      goal(CPU_A_TURN, { thinharness: { mostTimes: isNode24 ? 0.75 : 0.6 } }),
      ABOVE_CAREFUL,
      WALL_A_TURN,
      PEAK,
    ],
  },
  {
    name: 'turns-200',
    title: 'A run of 200 turns, 1 KiB of tool output each',
    contenders: LOOPS,
    work: { warmUp: 2, runs: 1, turns: 200, resultChars: 1024, marked: true },
    measures: [goal(CPU, { thinharness: { mostTimes: 0.4 } }), ABOVE_CAREFUL, GROWTH, PEAK],
  },
  {
    name: 'turns-2000',
    title: 'A run of 2,000 turns, 1 KiB of tool output each',
    contenders: LOOPS,
    work: { warmUp: 0, runs: 1, turns: 2000, resultChars: 1024, marked: true },
    measures: [goal(CPU, { thinharness: { mostTimes: 0.4 } }), ABOVE_CAREFUL, GROWTH, PEAK],
    isLong: true,
  },
  {
    name: 'runs-500',
    title: '500 concurrent runs of 5 turns, provider latency 50 ms',
    contenders: LOOPS,
    work: { warmUp: 20, runs: 500, turns: 5, latencyMs: 50, resultChars: 1024, together: true },
    measures: [
      goal(WALL, { thinharness: { mostTimes: 0.55 } }),
      CPU_A_TURN,
      {
        title: 'memory per run',
        unit: 'KB',
        of: ({ grownKb }, { runs }) => grownKb / runs,
        goals: { thinharness: { most: 130 } },
      },
    ],
  },
  {
    name: 'tools-8',
    title: '8 parallel tool calls of 20 ms per reply, 20 turns',
    contenders: LOOPS,
    work: { warmUp: 1, runs: 1, turns: 20, calls: 8, toolMs: 20 },
    measures: [
      {
        title: 'wall per batch',
        unit: 'ms',
        of: ({ wallMs }, { turns }) => wallMs / (turns - 1),
        hasRatio: true,
        goals: { thinharness: { mostTimes: 0.98 } },
      },
      {
        title: 'CPU per tool call',
        unit: 'ms',
        of: ({ cpuMs }, { turns, calls = 1 }) => cpuMs / ((turns - 1) * calls),
        goals: { thinharness: { most: 0.25 } },
      },
    ],
  },
  {
    name: 'deltas',
    title: '20,000 text deltas',
    contenders: STREAMS,
    work: { warmUp: 2, runs: 3, turns: 1, deltas: 20_000, streamed: true },
    measures: [EVENTS, EVENTS_BESIDE_CAREFUL, PEAK],
  },
  ...[32, 256].map((kib) => ({
    name: `argument-${kib}`,
    title: `A tool argument of ${kib} KiB, streamed`,
    contenders: LOOPS,
    work: { warmUp: 4, runs: 8, turns: 2, argumentChars: kib * 1024, streamed: true },
    measures: [
      {
        title: 'CPU per KiB',
        unit: 'µs',
        of: ({ cpuMs }: Report, { runs }: Work) => (cpuMs / runs / kib) * 1000,
        hasRatio: true,
        goals: { thinharness: { mostTimes: 0.6 } },
      },
      goal(CPU_BESIDE_CAREFUL, { thinharness: { most: 2 } }),
    ],
  })),
  {
    name: 'first-answer',
    title: 'Cold start: one tool call and the first answer',
    contenders: LOOPS,
    work: { runs: 1, turns: 2 },
    measures: [goal(PROCESS_CPU, { thinharness: { mostTimes: 0.75 } }), PEAK],
  },
  {
    name: 'import',
    title: 'Import',
    contenders: ['nothing', "import 'thinharness'", "import 'thinharness/providers'", "import 'openai'"],
    work: { runs: 0, turns: 0 },
    measures: [
      {
        title: 'CPU above bare Node',
        unit: 'ms',
        of: ({ processCpuMs }, _, round) => processCpuMs - round('nothing').processCpuMs,
        goals: { "import 'thinharness'": { most: 15 } },
      },
      PEAK,
    ],
  },
  ...RESPONSES_SCENARIOS,
  ...LOOP_SCENARIOS,
]
