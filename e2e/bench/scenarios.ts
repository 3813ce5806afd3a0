// The measurements over HTTP and their goals: the Responses API, a tool with a zod schema, default options. The goals are ratios
// to the loop that one writes by hand with `fetch`, in the same round, or plain numbers.
import {
  CPU,
  CPU_A_CALL,
  CPU_A_DELTA,
  CPU_A_RUN,
  CPU_A_TURN,
  CPU_ABOVE_NODE,
  GROWTH,
  MEMORY_A_RUN,
  PEAK,
  PROCESS_CPU,
  WALL,
  goal,
} from './measures.js'
import { LOOP_SCENARIOS } from './loop-scenarios.js'
import type { Goal, Measure } from './measures.js'
import type { Work } from './work.js'

export interface Scenario {
  /** For `--only`. */
  readonly name: string
  readonly title: string
  /** In the order in which they run; ratios are to the first. */
  readonly contenders: readonly string[]
  readonly work: Work
  readonly measures: readonly Measure[]
  /** Left out by `--quick`, and at most 2 rounds. */
  readonly isLong?: boolean
}

const OURS = 'thinharness'
export const LOOPS = ['fetch', 'careful', 'client', OURS]

const AFTER_10_S = { warmUpCpuMs: 10_000, runs: 3, leastCpuMs: 2000 }
const AFTER_100_TURNS = { title: 'after 100 turns', at: { warmUp: 5, runs: 3, leastCpuMs: 600 } }

/** Scenarios that are measured in the first run of a process, warm, and after 10 s of work, as in a server. */
const AT_EACH_MOMENT = [
  {
    ...{ name: 'turns', title: '20 turns', contenders: [...LOOPS, 'thinharness, a harness per run'] },
    ...{ work: { turns: 20 }, warm: AFTER_100_TURNS },
    measures: [ours(CPU_A_TURN, { mostTimes: 0.5 }), PEAK],
  },
  {
    ...{ name: 'streamed', title: '20 turns, streamed', contenders: LOOPS },
    // About 8 deltas per call.
    ...{ work: { turns: 20, argumentChars: 80, streamed: true }, warm: AFTER_100_TURNS },
    measures: [ours(CPU_A_TURN, { mostTimes: 0.6 })],
  },
  {
    ...{ name: 'deltas', title: '20,000 text deltas', contenders: [...LOOPS, 'thinharness, batches'] },
    work: { turns: 1, deltas: 20_000, streamed: true },
    warm: { title: 'after as many', at: { warmUp: 1, runs: 2, leastCpuMs: 300 } },
    measures: [ours(CPU_A_DELTA, { mostTimes: 0.7, on24: 1.2 })],
  },
  {
    ...{ name: 'tools-8', title: '8 concurrent tool calls of 20 ms per reply', contenders: LOOPS },
    work: { turns: 11, calls: 8, toolMs: 20 },
    warm: { title: 'after 30 turns', at: { warmUp: 3, runs: 3 } },
    measures: [ours(CPU_A_CALL, { most: 0.25 })],
  },
]

/** What is measured over HTTP, also of other libraries. */
export const SHARED: readonly Scenario[] = [
  ...AT_EACH_MOMENT.flatMap(({ name, title, work, warm, ...others }) => [
    { ...others, name, title: `${title}, the first of a process`, work: { ...work, runs: 1 } },
    { ...others, name: `${name}-warm`, title: `${title}, ${warm.title}`, work: { ...work, ...warm.at } },
    // Ten seconds of CPU would take minutes where tools wait.
    ...('toolMs' in work
      ? []
      : [
          {
            ...others,
            name: `${name}-hot`,
            title: `${title}, after 10 s`,
            work: { ...work, ...AFTER_10_S },
            isLong: true,
          },
        ]),
  ]),
  {
    name: 'turns-200',
    title: '200 turns of 1 KiB of tool output',
    contenders: LOOPS,
    work: { warmUp: 1, runs: 1, turns: 200, resultChars: 1024, marked: true },
    measures: [ours(CPU, { mostTimes: 0.4 }), ours(GROWTH, { most: 0.1 })],
  },
  {
    name: 'runs-200',
    title: '200 concurrent runs of 6 turns, 50 ms latency',
    contenders: LOOPS,
    work: { warmUp: 20, runs: 200, turns: 6, latencyMs: 50, together: true },
    measures: [ours(WALL, { mostTimes: 0.6 }), CPU_A_TURN, ours(MEMORY_A_RUN, { most: 130, on24: 160 })],
  },
  {
    name: 'argument-32',
    title: 'A tool argument of 32 KiB, streamed',
    contenders: LOOPS,
    work: { warmUp: 1, runs: 3, turns: 2, argumentChars: 32 * 1024, streamed: true },
    measures: [ours({ ...CPU_A_RUN, unit: 'ms', of: ({ cpuMs, runs }) => cpuMs / runs }, { mostTimes: 0.6 })],
  },
  {
    name: 'first-answer',
    title: 'The first answer of a process',
    contenders: [...LOOPS, 'thinharness, without zod'],
    work: { runs: 1, turns: 1 },
    measures: [
      goal(PROCESS_CPU, { [OURS]: { mostTimes: 1.15 }, 'thinharness, without zod': { mostTimes: 0.75 } }),
      PEAK,
    ],
  },
]

export const SCENARIOS: readonly Scenario[] = [
  ...SHARED,
  {
    name: 'turns-2000',
    title: '2,000 turns of 1 KiB of tool output',
    contenders: LOOPS,
    work: { runs: 1, turns: 2000, resultChars: 1024, marked: true },
    measures: [ours(CPU, { mostTimes: 0.4 }), ours(GROWTH, { most: 0.1 }), PEAK],
    isLong: true,
  },
  {
    name: 'new-harness',
    title: 'A new harness with one tool, 1,000 times',
    contenders: ['new Harness'],
    work: { warmUp: 1000, runs: 1000, turns: 1 },
    measures: [goal({ ...CPU_A_RUN, title: 'CPU', hasRatio: false }, { 'new Harness': { most: 20 } })],
  },
  {
    name: 'import',
    title: 'Import',
    contenders: ['nothing', "import 'thinharness'", "import 'thinharness/providers'", "import 'openai'"],
    work: { runs: 0, turns: 0 },
    measures: [goal(CPU_ABOVE_NODE, { "import 'thinharness'": { most: 15 } }), PEAK],
  },
  ...LOOP_SCENARIOS,
]

function ours(measure: Measure, target: Goal): Measure {
  return goal(measure, { [OURS]: target })
}
