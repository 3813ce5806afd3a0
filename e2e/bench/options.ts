import { parseArgs } from 'node:util'
import { SCENARIOS } from './scenarios.js'
import type { Scenario } from './scenarios.js'

export const USAGE = `npm run bench -- [options]

  --only <scenario>  Only this scenario; may be given more than once.
  --nodes <list>     Versions of Node, as in \`20,24=/path/to/node\`; one without a path is installed from npm if it is another
                     than that of this process. Default: NODES of the environment, or the Node of this process.
  --rounds <n>       Rounds of each scenario. Default 3.
  --quick            1 round, without the long scenarios.
  --profile <folder> Keeps a CPU profile of each process (--cpu-prof), which makes them slower.
  --write            Writes e2e/bench/results.md; for a whole run on a quiet machine.
  --help             Shows this.

With BENCH_POSTGRES_URL=postgres://… the logs are measured in that database too, in a schema for each process.

Scenarios: ${SCENARIOS.map(({ name }) => name).join(', ')}`

export interface Options {
  readonly chosen: readonly Scenario[]
  readonly rounds: number
  readonly nodes?: string | undefined
  readonly write: boolean
  readonly profiles?: string | undefined
  readonly help: boolean
}

const ROUNDS = 3
const QUICK_ROUNDS = 1

/** Throws a `TypeError` for unknown options and wrong values. */
export function readOptions(args: string[]): Options {
  const { values } = parseArgs({
    args,
    options: {
      only: { type: 'string', multiple: true, default: [] },
      nodes: { type: 'string' },
      rounds: { type: 'string' },
      quick: { type: 'boolean', default: false },
      profile: { type: 'string' },
      write: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  const { only, quick, write, help, nodes, profile: profiles } = values
  const unknown = only.find((name) => !SCENARIOS.some((scenario) => scenario.name === name))
  if (unknown !== undefined) throw new TypeError(`Unknown scenario \`${unknown}\`.`)
  if (write && (quick || only.length > 0 || profiles !== undefined))
    throw new TypeError('`--write` needs all scenarios and all rounds: leave out `--quick`, `--only` and `--profile`.')
  const rounds = Number(values.rounds ?? (quick ? QUICK_ROUNDS : ROUNDS))
  if (!Number.isInteger(rounds) || rounds < 1) {
    throw new TypeError(`Expected \`--rounds\` to be a whole number from 1 up, got \`${String(values.rounds)}\`.`)
  }
  const chosen = SCENARIOS.filter(({ name, isLong }) => (only.length > 0 ? only.includes(name) : !(quick && isLong)))
  return { chosen, rounds, nodes, write, profiles, help }
}
