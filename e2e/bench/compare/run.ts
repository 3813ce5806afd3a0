// `npm run bench:compare`: the same work with other libraries, in one table. The peers are installed into a cache folder, in pinned
// versions. One that cannot be installed, or does not finish, is reported with its error, and the others go on.
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { perform, startProvider } from '../children.js'
import { writeComparison } from './document.js'
import { install } from './install.js'
import { importOf } from './contenders.js'
import { PEERS } from './peers.js'
import { COMPARISON } from './scenarios.js'
import { comparisonOf } from './table.js'
import type { Report } from '../work.js'
import type { RoundReports } from '../report.js'
import type { Scenario } from '../scenarios.js'
import type { Compared } from './table.js'

const USAGE = `npm run bench:compare -- [options]

  --only <scenario>  Only this scenario; may be given more than once.
  --rounds <n>       Rounds of each scenario. Default 5.
  --write            Writes docs/comparison.md; for a whole run on a quiet machine.
  --help             Shows this.

Scenarios: ${COMPARISON.map(({ name }) => name).join(', ')}`

/** By contender. */
type Failures = Map<string, string>

/** The contenders that cannot be installed. */
async function installAll(): Promise<Failures> {
  const failures: Failures = new Map()
  for (const peer of PEERS) {
    console.error(`Installing ${peer.name} …`)
    await install(peer).catch((error: unknown) => {
      for (const contender of [peer.name, importOf(peer.name)])
        failures.set(contender, `not installed: ${words(error)}`)
    })
  }
  return failures
}

/** Interleaved: in each round every contender runs once. One that fails is left out of later rounds of the scenario. */
async function compare(
  scenario: Scenario,
  missing: Failures,
  to: { baseUrl: string; rounds: number },
): Promise<Compared> {
  const failures = new Map([...missing].filter(([contender]) => scenario.contenders.includes(contender)))
  const rounds: RoundReports[] = []
  for (let round = 0; round < to.rounds; round++) {
    const reports: Record<string, Report> = {}
    for (const contender of scenario.contenders) {
      if (failures.has(contender)) continue
      await perform({ contender, baseUrl: to.baseUrl, work: scenario.work }).then(
        (report) => (reports[contender] = report),
        (error: unknown) => failures.set(contender, words(error)),
      )
    }
    rounds.push(reports)
  }
  return { scenario, rounds, failures: Object.fromEntries(failures) }
}

/** The line of the error among the lines of its process. */
function words(error: unknown): string {
  const lines = String(error instanceof Error ? error.message : error).split('\n')
  return (lines.find((line) => /^\w*Error\b/.test(line)) ?? lines[0] ?? '').slice(0, 300)
}

async function run({ only, rounds, write }: { only: string[]; rounds: number; write: boolean }): Promise<void> {
  const chosen = COMPARISON.filter(({ name }) => only.length === 0 || only.includes(name))
  const missing = await installAll()
  const provider = await startProvider()
  const compared: Compared[] = []
  try {
    for (const scenario of chosen) {
      const one = await compare(scenario, missing, { baseUrl: provider.baseUrl, rounds })
      compared.push(one)
      console.log(`${scenario.title} (${scenario.name})\n\n${comparisonOf([one]).table}\n`)
    }
  } finally {
    provider.stop()
  }
  const { table, behind, rows } = comparisonOf(compared)
  const failed = compared.flatMap(({ scenario, failures }) =>
    Object.entries(failures).map(([contender, error]) => `${scenario.title}: ${contender}: ${error}`),
  )
  const machine = `Node ${process.versions.node}, ${cpus().length} × ${cpus()[0]?.model ?? 'CPU'}`
  console.log(`${machine}; medians of ${rounds} rounds\n\n${table}`)
  console.log(`\nFirst of the libraries in ${rows - behind.length} of ${rows} rows.`)
  for (const line of behind) console.log(`NOT FIRST ${line}`)
  for (const line of failed) console.log(`FAILED ${line}`)
  if (write) await writeComparison({ table, behind, failed, rows, machine, rounds })
}

try {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', multiple: true, default: [] },
      rounds: { type: 'string', default: '5' },
      write: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  const rounds = Number(values.rounds)
  if (!Number.isInteger(rounds) || rounds < 1)
    throw new TypeError('Expected `--rounds` to be a whole number from 1 up.')
  const unknown = values.only.find((name) => !COMPARISON.some((scenario) => scenario.name === name))
  if (unknown !== undefined) throw new TypeError(`Unknown scenario \`${unknown}\`.`)
  if (values.write && values.only.length > 0) throw new TypeError('`--write` needs all scenarios: leave out `--only`.')
  if (values.help) console.log(USAGE)
  else await run({ ...values, rounds })
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
