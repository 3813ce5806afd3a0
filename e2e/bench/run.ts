// `npm run bench`: the cost of the package compared with loops without a library, with a provider on loopback, on several versions of
// Node.
import { cpus } from 'node:os'
import { startProvider } from './children.js'
import { writeDocument } from './document.js'
import { nodesOf } from './nodes.js'
import { readOptions, USAGE } from './options.js'
import { tableOf } from './report.js'
import { measured } from './rounds.js'
import { tokenSection } from './tool-tokens.js'
import type { Section } from './document.js'
import type { Options } from './options.js'

async function bench({ chosen, rounds, write, profiles, nodes: list }: Options): Promise<void> {
  const nodes = await nodesOf(list)
  const machine = `Node ${nodes.map(({ version }) => version).join(', ')}, ${cpus().length} × ${cpus()[0]?.model ?? 'CPU'}`
  console.log(`${machine}; medians of ${rounds} rounds; in brackets the ratio to the first line, within a round.`)
  const provider = await startProvider()
  const sections: Section[] = []
  try {
    for (const scenario of chosen) {
      const { name, title } = scenario
      const { table, notes } = tableOf(await measured(scenario, { baseUrl: provider.baseUrl, rounds, nodes, profiles }))
      sections.push({ title, table, notes })
      console.log(`\n${title} (${name})\n\n${table}`)
      for (const line of notes) console.log(line)
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
