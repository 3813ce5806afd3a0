// `npm run cuts`: every protocol's official client reads streams that were cut, and ends in the same state: those of the corpus are
// cut at every byte; those of 2,000 generated runs, live and from the log, behind each item and at 64 random bytes. Takes hours.
// The last lines are the totals of each protocol. `npm run cuts -- ag-ui native` runs those protocols only. `RUNS=200` and
// `MINUTES=10` (for each test) shorten it; a failure prints `SEED` and `SEED_PATH`, which run it again.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

const PROTOCOLS = ['native', 'ai-sdk', 'ag-ui', 'responses']
const FILES = { 'ai-sdk': ['cut', 'readings'] }

const given = process.argv.slice(2)
const unknown = given.filter((name) => !PROTOCOLS.includes(name))
if (unknown.length > 0) throw new Error(`Unknown: ${unknown.join(', ')}. There are ${PROTOCOLS.join(', ')}.`)
const files = (given.length > 0 ? given : PROTOCOLS).flatMap((name) =>
  (FILES[name] ?? ['readings']).map((file) => `tests/ui/${name}/${file}.test.ts`),
)

const vitest = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...files], {
  env: { RUNS: '2000', EVERY_BYTE: '1', ...process.env },
  stdio: ['ignore', 'pipe', 'inherit'],
})
const totals = []
for await (const line of createInterface({ input: vitest.stdout })) {
  const found = /\b[A-Z][\w ]*: \{"corpusRuns".*\}/i.exec(line)
  if (found === null) console.log(line)
  else totals.push(found[0].replaceAll('39m', ''))
}
const code = vitest.exitCode ?? (await new Promise((resolve) => vitest.once('exit', resolve)))
console.log(totals.sort().join('\n'))
process.exitCode = code === 0 ? 0 : 1
