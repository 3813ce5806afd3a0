// `npm run cuts`: every protocol's official client reads streams that were cut, and ends in the same state: those of the corpus are
// cut at every byte; those of 2,000 generated runs, live and from the log, behind each item and at 64 random bytes. Takes hours.
// The last lines are the totals of each protocol. `npm run cuts -- ag-ui native` runs those protocols only. `RUNS=200` and
// `MINUTES=10` (for each test) shorten it; a failure prints `SEED` and `SEED_PATH`, which run it again.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'

/** Several protocols may be cut at once. */
const TOTALS = `.build/cuts-${process.pid}.jsonl`
const PROTOCOLS = ['native', 'ai-sdk', 'ag-ui', 'responses']
const FILES = { 'ai-sdk': ['cut', 'readings'] }

const given = process.argv.slice(2)
const unknown = given.filter((name) => !PROTOCOLS.includes(name))
if (unknown.length > 0) {
  console.error(`Unknown: ${unknown.join(', ')}. There are ${PROTOCOLS.join(', ')}.`)
  process.exit(2)
}
const files = (given.length > 0 ? given : PROTOCOLS).flatMap((name) =>
  (FILES[name] ?? ['readings']).map((file) => `tests/adapters/ui/${name}/${file}.test.ts`),
)

mkdirSync('.build', { recursive: true })
const { status } = spawnSync(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...files], {
  env: { RUNS: '2000', EVERY_BYTE: '1', ...process.env, CUTS_TOTALS: TOTALS },
  stdio: ['ignore', 'inherit', 'inherit'],
})
const totals = existsSync(TOTALS) ? readFileSync(TOTALS, 'utf8').trim().split('\n') : []
rmSync(TOTALS, { force: true })
for (const { protocol, corpusRuns, generatedRuns, streams, cuts, readings } of totals.map((line) => JSON.parse(line))) {
  const runs = `${corpusRuns} runs of the corpus and ${generatedRuns} generated ones`
  console.log(`${protocol}: ${runs}, ${streams} streams, ${cuts} cuts, ${readings} readings that were cut and resumed`)
}
console.log(status === 0 ? 'All ended in the same state.' : 'Some tests failed: see above.')
process.exitCode = status === 0 ? 0 : 1
