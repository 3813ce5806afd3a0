// `npm run bench`: what the package costs beside loops without a library, against a provider on loopback.
import { cpus } from 'node:os'
import { perform, startProvider } from './children.js'
import { writeDocument } from './document.js'
import { readOptions, USAGE } from './options.js'
import { tableOf } from './report.js'

const LONG_ROUNDS = 3

/** @typedef {import('./scenarios.js').Scenario} Scenario */

/** Interleaved: in each round every contender runs once, so that a busy minute of the machine meets all of them. */
async function measure(/** @type {Scenario} */ scenario, /** @type {number} */ rounds, /** @type {string} */ baseUrl) {
  const { contenders, work } = scenario
  const reports = []
  for (let round = 0; round < rounds; round++) {
    /** @type {Record<string, import('./work.js').Report>} */
    const ofRound = {}
    for (const contender of contenders) ofRound[contender] = await perform({ contender, baseUrl, work })
    reports.push(ofRound)
  }
  return reports
}

/** @param {ReturnType<typeof readOptions>} options */
async function bench({ chosen, rounds, write }) {
  const machine = `Node ${process.versions.node}, ${cpus().length} × ${cpus()[0]?.model ?? 'CPU'}`
  console.log(`${machine}; medians of ${rounds} rounds; in brackets the ratio to the first line, within a round.`)
  const provider = await startProvider()
  const sections = []
  try {
    for (const scenario of chosen) {
      const { isLong = false, name, title } = scenario
      const reports = await measure(scenario, isLong ? Math.min(rounds, LONG_ROUNDS) : rounds, provider.baseUrl)
      const { table, missed } = tableOf(scenario, reports)
      sections.push({ title, table, missed })
      console.log(`\n${title} (${name})\n\n${table}`)
      for (const line of missed) console.log(`MISSED ${line}`)
    }
  } finally {
    provider.stop()
  }
  if (write) await writeDocument(sections, { machine, rounds })
}

try {
  const options = readOptions(process.argv.slice(2))
  if (options.help) console.log(USAGE)
  else await bench(options)
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
