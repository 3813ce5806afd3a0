// The work of the comparison: that of `npm run bench` over HTTP, done by the libraries too.
import { CPU_ABOVE_NODE, GROWTH } from '../measures.js'
import { LOOPS as SHARED_LOOPS, SHARED } from '../scenarios.js'
import { importOf } from './contenders.js'
import { PEERS } from './peers.js'
import type { Scenario } from '../scenarios.js'

/** A column of the table. */
export interface Column {
  readonly title: string
  /** The contender that only imports its modules. */
  readonly importer: string
}

/** Ratios are to the first. */
export const COLUMNS: readonly Column[] = [
  { title: 'fetch', importer: 'nothing' },
  { title: 'careful', importer: 'nothing' },
  { title: 'client', importer: "import 'openai'" },
  { title: 'thinharness', importer: "import 'thinharness'" },
  ...PEERS.map(({ name }) => ({ title: name, importer: importOf(name) })),
]

export const OURS = 'thinharness'
/** Loops that are written by hand: they are no library. */
export const LOOPS = ['fetch', 'careful']

export const COMPARISON: readonly Scenario[] = [
  // Without those of 10 s, which would take an hour. A ratio of differences says nothing.
  ...SHARED.filter(({ isLong }) => isLong !== true).map(({ measures, ...scenario }) => ({
    ...scenario,
    contenders: [...SHARED_LOOPS, ...PEERS.map(({ name }) => name)],
    measures: measures.filter(({ title }) => title !== GROWTH.title),
  })),
  {
    name: 'import',
    title: 'Import',
    contenders: ['nothing', ...COLUMNS.slice(LOOPS.length).map(({ importer }) => importer)],
    work: { runs: 0, turns: 0 },
    measures: [CPU_ABOVE_NODE],
  },
]
