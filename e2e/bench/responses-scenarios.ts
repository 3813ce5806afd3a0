// The Responses API with a zod tool and default options. Each is measured in a process that has just begun, and in a warm one:
// a server is warm, and there the compiler has taken most of the cost out of the hand-written loops.
import { CPU, CPU_A_TURN, PROCESS_CPU, WALL, goal } from './measures.js'
import type { Goal, Measure } from './measures.js'
import type { Scenario } from './scenarios.js'
import type { Work } from './work.js'

const OURS = 'thinharness, Responses'
const CONTENDERS = ['fetch, Responses', 'careful, Responses', OURS]
/** CPU time that a process has spent when it counts as warm, and when the compiler has nothing left to do. */
const WARM = { warmUpCpuMs: 600 }
const HOT = { warmUpCpuMs: 4000 }

interface Kind {
  readonly name: string
  readonly title: string
  readonly work: Work
  readonly measures: readonly Measure[]
}

const MEMORY: Measure = {
  title: 'memory per run',
  unit: 'KB',
  of: ({ grownKb }, { runs }) => grownKb / runs,
  goals: { [OURS]: { most: 120 } },
}

const EVENTS: Measure = {
  title: 'events per CPU second',
  unit: '',
  of: ({ deltas, cpuMs }) => deltas / (cpuMs / 1000),
  hasRatio: true,
  goals: { [OURS]: { least: 600_000 } },
}

const EVENTS_BESIDE_CAREFUL: Measure = {
  title: 'relative to careful',
  unit: '',
  of: ({ deltas, cpuMs }, _, round) => {
    const careful = round('careful, Responses')
    return deltas / cpuMs / (careful.deltas / careful.cpuMs)
  },
}

const CPU_A_CALL: Measure = {
  title: 'CPU per tool call',
  unit: 'ms',
  of: ({ cpuMs }, { runs, turns, calls = 1 }) => cpuMs / (runs * (turns - 1) * calls),
  hasRatio: true,
  goals: { [OURS]: { most: 0.22 } },
}

const KINDS: readonly Kind[] = [
  {
    name: 'turns-20',
    title: '20 turns',
    work: { runs: 1, turns: 20 },
    measures: [ours(CPU_A_TURN, { mostTimes: 0.5 })],
  },
  {
    name: 'turns-20-streamed',
    title: '20 turns, streamed',
    work: { runs: 1, turns: 20, streamed: true },
    measures: [ours(CPU_A_TURN, { mostTimes: 0.5 })],
  },
  {
    name: 'turns-200',
    title: '200 turns of 1 KiB',
    work: { runs: 1, turns: 200, resultChars: 1024 },
    measures: [ours(CPU, { mostTimes: 0.4 })],
  },
  {
    name: 'runs-200',
    title: '200 concurrent runs of 5 turns, provider latency 50 ms',
    work: { warmUp: 5, runs: 200, turns: 5, latencyMs: 50, resultChars: 1024, together: true },
    measures: [ours(WALL, { mostTimes: 0.55 }), CPU_A_TURN, MEMORY],
  },
  {
    name: 'tools-8',
    title: '8 concurrent tool calls per reply, 20 turns',
    work: { runs: 1, turns: 20, calls: 8, toolMs: 20 },
    measures: [CPU_A_CALL],
  },
  {
    name: 'deltas',
    title: '20,000 text deltas',
    work: { runs: 3, turns: 1, deltas: 20_000, streamed: true },
    measures: [EVENTS, EVENTS_BESIDE_CAREFUL],
  },
]

export const RESPONSES_SCENARIOS: readonly Scenario[] = [
  ...KINDS.flatMap(({ name, title, work, measures }) => [
    {
      name: `responses-${name}`,
      title: `Responses: ${title}`,
      contenders: CONTENDERS,
      work: { warmUp: 1, ...work },
      measures,
    },
    {
      name: `responses-${name}-warm`,
      title: `Responses, warm: ${title}`,
      contenders: CONTENDERS,
      work: { warmUp: 1, ...WARM, ...work, runs: work.together === true ? work.runs : work.runs * 5 },
      measures,
    },
  ]),
  {
    name: 'responses-turns-20-hot',
    title: 'Responses, after 4 s of CPU time: 20 turns',
    contenders: CONTENDERS,
    work: { ...HOT, runs: 100, turns: 20 },
    measures: [CPU_A_TURN],
  },
  {
    name: 'responses-first-answer',
    title: 'Responses, cold start: one tool call and the first answer',
    contenders: CONTENDERS,
    work: { runs: 1, turns: 2 },
    measures: [ours(PROCESS_CPU, { mostTimes: 0.75 })],
  },
]

function ours(measure: Measure, target: Goal): Measure {
  return goal(measure, { [OURS]: target })
}
