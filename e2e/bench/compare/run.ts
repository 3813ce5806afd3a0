// `npm run bench:compare`: the same work with other libraries, in one table. The peers are installed into a cache folder, in pinned
// versions. One that cannot be installed, or does not finish, is reported with its error, and the others go on.
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { startProvider } from '../children.js'
import { nodesOf } from '../nodes.js'
import { measured, words } from '../rounds.js'
import { writeComparison } from './document.js'
import { install } from './install.js'
import { importOf } from './contenders.js'
import { PEERS } from './peers.js'
import { COMPARISON } from './scenarios.js'
import { comparisonOf } from './table.js'
import type { Measured } from '../rounds.js'

const USAGE = `npm run bench:compare -- [options]

  --only <scenario>  Only this scenario; may be given more than once.
  --nodes <list>     Versions of Node, as of \`npm run bench\`.
  --rounds <n>       Rounds of each scenario. Default 3.
  --write            Writes docs/comparison.md; for a whole run on a quiet machine.
  --help             Shows this.

Scenarios: ${COMPARISON.map(({ name }) => name).join(', ')}`

/** The contenders that cannot be installed. */
async function installAll(): Promise<ReadonlyMap<string, string>> {
  const failures = new Map<string, string>()
  for (const peer of PEERS) {
    console.error(`Installing ${peer.name} …`)
    await install(peer).catch((error: unknown) => {
      for (const contender of [peer.name, importOf(peer.name)])
        failures.set(contender, `not installed: ${words(error)}`)
    })
  }
  return failures
}

interface Chosen {
  readonly only: readonly string[]
  readonly nodes?: string | undefined
  readonly rounds: number
  readonly write: boolean
}

async function run({ only, nodes: list, rounds, write }: Chosen): Promise<void> {
  const chosen = COMPARISON.filter(({ name }) => only.length === 0 || only.includes(name))
  const nodes = await nodesOf(list)
  const missing = await installAll()
  const provider = await startProvider()
  const all: Measured[] = []
  try {
    for (const scenario of chosen) {
      const one = await measured(scenario, { baseUrl: provider.baseUrl, rounds, nodes, missing })
      all.push(one)
      for (const [index, { version }] of nodes.entries())
        console.log(`${scenario.title} (${scenario.name}), Node ${version}\n\n${comparisonOf([one], index).table}\n`)
    }
  } finally {
    provider.stop()
  }
  const findings = nodes.map(({ version }, index) => ({
    version,
    ...comparisonOf(all, index),
    failed: failed(all, index),
  }))
  const machine = `${cpus().length} × ${cpus()[0]?.model ?? 'CPU'}`
  for (const { version, table, rows, behind, failed } of findings) {
    console.log(`Node ${version}, ${machine}; medians of ${rounds} rounds\n\n${table}\n`)
    console.log(`First of the libraries in ${rows - behind.length} of ${rows} rows.`)
    for (const line of behind) console.log(`NOT FIRST ${line}`)
    for (const line of failed) console.log(`FAILED ${line}`)
  }
  if (write) await writeComparison(findings, { machine, rounds })
}

/** One line for each contender that failed, with its error. */
function failed(all: readonly Measured[], index: number): string[] {
  return all.flatMap(({ scenario, nodes }) =>
    Object.entries(nodes[index]?.failures ?? {}).map(([name, error]) => `${scenario.title}: ${name}: ${error}`),
  )
}

try {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', multiple: true, default: [] },
      nodes: { type: 'string' },
      rounds: { type: 'string', default: '3' },
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
