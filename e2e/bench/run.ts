// `npm run bench`: the cost of the package compared with loops without a library, with a provider on loopback.
import { cpus } from 'node:os'
import { perform, startProvider } from './children.js'
import { writeDocument } from './document.js'
import { tokenSection } from './tool-tokens.js'
import { readOptions, USAGE } from './options.js'
import { tableOf } from './report.js'
import type { Section } from './document.js'
import type { Options } from './options.js'
import type { RoundReports } from './report.js'
import type { Scenario } from './scenarios.js'
import type { Report } from './work.js'

const LONG_ROUNDS = 3

/** Interleaved: in each round every contender runs once, so that a busy minute of the machine affects all of them. */
async function measure(scenario: Scenario, { rounds, profiles }: Options, baseUrl: string): Promise<RoundReports[]> {
  const { contenders, work, isLong = false } = scenario
  const reports: RoundReports[] = []
  for (let round = 0; round < (isLong ? Math.min(rounds, LONG_ROUNDS) : rounds); round++) {
    const ofRound: Record<string, Report> = {}
    for (const contender of contenders) ofRound[contender] = await perform({ contender, baseUrl, work }, profiles)
    reports.push(ofRound)
  }
  return reports
}

async function bench(options: Options): Promise<void> {
  const { chosen, rounds, write } = options
  const machine = `Node ${process.versions.node}, ${cpus().length} × ${cpus()[0]?.model ?? 'CPU'}`
  console.log(`${machine}; medians of ${rounds} rounds; in brackets the ratio to the first line, within a round.`)
  const provider = await startProvider()
  const sections: Section[] = []
  try {
    for (const scenario of chosen) {
      const { name, title } = scenario
      const reports = await measure(scenario, options, provider.baseUrl)
      const { table, missed } = tableOf({ scenario, rounds: reports })
      sections.push({ title, table, missed })
      console.log(`\n${title} (${name})\n\n${table}`)
      for (const line of missed) console.log(`MISSED ${line}`)
    }
  } finally {
    provider.stop()
  }
  if (write) await writeDocument([...sections, await tokenSection()], { machine, rounds })
}

try {
  const options = readOptions(process.argv.slice(2))
  if (options.help) console.log(USAGE)
  else await bench(options)
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
