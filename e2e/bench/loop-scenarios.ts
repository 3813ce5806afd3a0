// The package with a model in its own process that answers at once: the cost of the loop itself, and of the logs.
import { CPU_A_TURN, meanStep } from './measures.js'
import type { Measure } from './measures.js'
import type { Scenario } from './scenarios.js'

/** The CPU time that one turn of the loop may take, in µs. */
const MOST_A_TURN = 150
/** Turns at the beginning and at the end of a long run that are compared. */
const COMPARED = 200

const OWN_TIME: Measure = {
  ...CPU_A_TURN,
  unit: 'µs',
  of: ({ cpuMs, runs }, { turns }) => (cpuMs / (runs * turns)) * 1000,
}

const FIRST_TURNS: Measure = {
  title: `the first ${COMPARED}`,
  unit: 'µs',
  of: ({ marks }) => meanStep(marks.slice(0, COMPARED + 1)) * 1000,
}

const LAST_TURNS: Measure = {
  title: `the last ${COMPARED}`,
  unit: 'µs',
  of: ({ marks }) => meanStep(marks.slice(-COMPARED - 1)) * 1000,
}

const PAYLOAD: Measure = { title: 'transcript as JSON', unit: 'KB', of: ({ payloadKb }) => payloadKb }

const HELD: Measure = { title: 'in memory at the end', unit: 'KB', of: ({ heldKb }) => heldKb }

const HELD_ABOVE: Measure = {
  title: 'beyond the transcript',
  unit: 'KB per turn',
  of: ({ heldKb, payloadKb }, { turns }) => (heldKb - payloadKb) / turns,
}

const MEMORY_LOG = 'run, no HTTP'
/** A routed request may take 20 µs more. */
const ROUTED = ['fallback, no HTTP', 'route, no HTTP']
const FILE_LOGS = ['never', 'interval', 'always'].map((fsync) => `file log, fsync ${fsync}`)
/** The database is a server that somebody has started; without one it is left out. */
const DATABASES = [
  ...['normal', 'full'].map((synchronous) => `SQLite, synchronous ${synchronous}`),
  ...(process.env['BENCH_POSTGRES_URL'] === undefined ? [] : ['PostgreSQL']),
]

export const LOOP_SCENARIOS: readonly Scenario[] = [
  {
    name: 'loop',
    title: 'The loop without HTTP, 20 turns',
    contenders: [MEMORY_LOG, 'stream, no HTTP'],
    work: { warmUp: 50, runs: 200, turns: 20 },
    measures: [{ ...OWN_TIME, goals: { [MEMORY_LOG]: { most: MOST_A_TURN } } }],
  },
  {
    name: 'routed',
    title: 'The loop without HTTP, 20 turns, with a model made of others',
    contenders: [MEMORY_LOG, ...ROUTED],
    work: { warmUp: 50, runs: 200, turns: 20 },
    measures: [OWN_TIME],
  },
  {
    name: 'loop-2000',
    title: 'The loop without HTTP, 2,000 turns, 1 KiB of tool output each',
    contenders: [MEMORY_LOG],
    work: { warmUp: 2, runs: 1, turns: 2000, resultChars: 1024, marked: true },
    measures: [
      { ...OWN_TIME, hasRatio: false, goals: { [MEMORY_LOG]: { most: MOST_A_TURN } } },
      FIRST_TURNS,
      LAST_TURNS,
    ],
  },
  {
    name: 'memory-2000',
    title: 'Memory of a run of 2,000 turns, 1 KiB of tool output each',
    contenders: [MEMORY_LOG, FILE_LOGS[1] ?? ''],
    work: { warmUp: 1, runs: 1, turns: 2000, resultChars: 1024, weighed: true },
    measures: [PAYLOAD, HELD, HELD_ABOVE],
  },
  {
    name: 'logs',
    title: 'The loop without HTTP with each kind of log, 200 turns of 1 KiB',
    contenders: [MEMORY_LOG, ...FILE_LOGS, ...DATABASES],
    work: { warmUp: 2, runs: 5, turns: 200, resultChars: 1024 },
    measures: [
      { ...OWN_TIME, goals: { 'file log, fsync interval': { mostTimes: 1.2 } } },
      { title: 'wall per turn', unit: 'µs', of: ({ wallMs, runs }, { turns }) => (wallMs / (runs * turns)) * 1000 },
    ],
  },
]
