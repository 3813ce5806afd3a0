// A thousand records, each labelled by a model, for no more money than is allowed; goes on after a crash.
//   npm run example -- records --cost 0.2        ends when 20 cents are used up
//   npm run example -- records --die 300         is killed after 300 records, as by a crash
//   npm run example -- records                   goes on where it ended, up to a dollar
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { Budget, fileLog } from 'thinharness'
import type { LogStore } from 'thinharness'
import { labeller } from './labeller.js'
import type { Label } from './labeller.js'
import { reviews } from './reviews.js'
import type { Review } from './reviews.js'

const { values } = parseArgs({
  options: {
    cost: { type: 'string', default: '1' },
    count: { type: 'string', default: '1000' },
    die: { type: 'string' },
  },
})
const log = fileLog('runs')
const before = await soFar(log)
if (before.done > 0) console.log(`${before.done} records were labelled before, for $${before.costUsd.toFixed(4)}`)

// What earlier processes have spent counts.
const budget = new Budget({ costUsd: Number(values.cost), spentUsd: before.costUsd })
const harness = labeller(log)
const records = reviews(Number(values.count))
const labels = new Map<number, Label>()
let ended = 0
const batch = { isUsedUp: false, shown: 0 }

const rows = harness.map(records, ({ id, text }) => ({ prompt: text, runId: idOf(id) }), {
  concurrency: 16,
  budget,
  // A record that failed, such as the one that did not fit into the budget, is tried again by the next process.
  ifExists: 'retry',
  onProgress({ done, costUsd, stopped }) {
    batch.isUsedUp = stopped === 'budget'
    show(done, costUsd)
  },
})
for await (const row of rows) {
  if (row.status === 'completed') labels.set(row.item.id, row.result.output)
  else if (!batch.isUsedUp) console.error(`\nrecord ${row.item.id}: ${describe(row.error)}`)
  ended += 1
  if (ended === Number(values.die)) process.kill(process.pid, 'SIGKILL')
}
await harness.close()

writeFileSync('labels.jsonl', linesOf(records))
report(await soFar(log))

function idOf(id: number): string {
  return `record-${String(id).padStart(4, '0')}`
}

/** One line that is written again and again on a terminal; elsewhere every tenth of the records has one. */
function show(done: number, costUsd: number | null): void {
  const line = `${done} of ${records.length}${costUsd === null ? '' : `, $${costUsd.toFixed(4)}`}`
  if (process.stderr.isTTY) process.stderr.write(`\r${line} `)
  else if (done > batch.shown && done % Math.ceil(records.length / 10) === 0) console.error(line)
  batch.shown = done
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** The records that have a label, in their order. */
function linesOf(all: readonly Review[]): string {
  const lines = all.flatMap(({ id, text }) => {
    const label = labels.get(id)
    return label === undefined ? [] : [`${JSON.stringify({ id, ...label, text })}\n`]
  })
  return lines.join('')
}

interface SoFar {
  readonly done: number
  readonly requests: number
  readonly costUsd: number
}

/** The log knows what was done, by whatever process. */
async function soFar(store: LogStore): Promise<SoFar> {
  let [done, requests, costUsd] = [0, 0, 0]
  for await (const { status, usage } of store.list({ kind: 'run' })) {
    if (status === 'completed') done += 1
    requests += usage.modelRequests
    costUsd += usage.costUsd ?? 0
  }
  return { done, requests, costUsd }
}

function report({ requests, costUsd }: SoFar): void {
  console.log(`\n${labels.size} of ${records.length} records are labelled, in data/labels.jsonl`)
  for (const topic of new Set([...labels.values()].map((label) => label.topic))) {
    const found = [...labels.values()].filter((label) => label.topic === topic)
    const urgent = found.filter((label) => label.urgent).length
    console.log(`  ${topic.padEnd(10)}${String(found.length).padStart(5)}${urgent > 0 ? `, ${urgent} urgent` : ''}`)
  }
  console.log(`${requests} requests in all, $${costUsd.toFixed(4)} of $${Number(values.cost).toFixed(2)}`)
  if (labels.size === records.length) return
  if (batch.isUsedUp) console.log('The money is used up. `npm start -- --cost 1` goes on.')
  process.exitCode = 1
}
