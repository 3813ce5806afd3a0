// `npm run bench:facts`: facts that are read at turn 3 are asked for at turns 200 and 2,000, and what that costs in tokens.
// `--turns 200,2000`, `--window 200000`, `--peers <folder>` for the packages of others.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { clearResults, observe, summarise } from 'thinharness/context'
import { ask, askUnder } from './asking.js'
import type { Asked, Asking, Way } from './asking.js'
import { truncating } from './contenders.js'
import { NAMES, summaryOf } from './facts.js'
import { PRUNING, summarizing } from './peers.js'
import { plantTree } from './trees.js'

const { values } = parseArgs({
  options: {
    turns: { type: 'string', default: '200,2000' },
    window: { type: 'string', default: '200000' },
    peers: { type: 'string', default: join(tmpdir(), 'thinharness-peers') },
  },
})
const turns = values.turns.split(',').map(Number)
const window = Number(values.window)

const OURS: readonly Way[] = [
  { title: '`clearResults`', policy: () => clearResults() },
  { title: '`summarise`', policy: (model) => summarise({ model }), write: summaryOf },
  { title: '`summarise`, the summary loses all facts', policy: (model) => summarise({ model }), write: forgetful },
  { title: '`observe`', policy: (model) => observe({ model }), write: summaryOf },
]

const PEERS = [
  summarizing({ title: 'LangChain, `summarizationMiddleware`', window, trim: null, folder: values.peers }),
  summarizing({ title: '… whose summarizer reads everything', window, trim: window, folder: values.peers }),
  PRUNING,
  truncating(window),
]

const folder = await mkdtemp(join(tmpdir(), 'thinharness-facts-'))
try {
  const asking: Asking = { tree: await plantTree(join(folder, 'packages')), window, turns }
  const base = await ask({ ...asking, window: Number.MAX_SAFE_INTEGER }, { title: 'no compaction', policy: () => null })
  const all: Asked[] = [base]
  for (const way of OURS) all.push(await ask(asking, way))
  for (const peer of PEERS) all.push(await askUnder(peer, { transcript: base.transcript, turns }))
  console.log(tableOf(all))
  const missed = all.slice(1, 1 + OURS.length).filter(({ right }) => right.some((count) => count < NAMES.length))
  for (const { title } of missed) console.log(`MISSED ${title}: not every fact was found`)
  if (missed.length > 0) process.exitCode = 1
} finally {
  await rm(folder, { recursive: true, force: true })
}

function forgetful(text: string): string {
  return summaryOf(text.replace(/The access code of \w+ is \d+\./g, '…'))
}

function tableOf(all: readonly Asked[]): string {
  const titles = turns.map((turn) => `right at turn ${turn.toLocaleString('en')}`)
  const head = [
    '',
    ...titles,
    'calls of `recall`',
    'longest request',
    'input, million',
    'from the cache',
    'by writers',
    'cost',
  ]
  const cost = all[0]?.meter.cost ?? 1
  const lines = all.map(({ title, right, recalls, meter }) => [
    title,
    ...right.map((count) => `${count} of ${NAMES.length}`),
    String(recalls),
    meter.longest.toLocaleString('en'),
    (meter.input / 1e6).toFixed(1),
    `${((meter.cached / meter.input) * 100).toFixed(1)} %`,
    ((meter.writerInput + meter.writerOutput) / 1e6).toFixed(2),
    `${(meter.cost / cost).toFixed(3)}×`,
  ])
  const rules = head.map((_, index) => (index === 0 ? '---' : '---:'))
  return [head, rules, ...lines].map((line) => `| ${line.join(' | ')} |`).join('\n')
}
