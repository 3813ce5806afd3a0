// `npm run bench:memory`: searches in an index of a memory with a million texts of a thousand owners, in a SQLite file. The words are
// as frequent as in natural language. With `-- --vectors`, vectors of 384 numbers too; with `-- --entries=100000`, fewer texts.
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FUSED, fuseRanks } from '#extensions/memory/search-memory.js'
import { SqliteIndex } from '#extensions/memory/sqlite/sqlite-index.js'
import type { MemoryRow, Scope } from '#extensions/memory/memory-index.js'
import { searchWords } from '#extensions/memory/search-words.js'

const ENTRIES = Number(/--entries=(\d+)/.exec(process.argv.join(' '))?.[1] ?? 1_000_000)
const WITH_VECTORS = process.argv.includes('--vectors')
const OWNERS = 1000
const LOG_ROWS = 100
const VOCABULARY = 100_000
const QUERIES = 200
const LENGTH = 384
const TOPICS = 500
const LIMIT = 8

/** Numbers that are the same in every run of the bench. */
let seed = 7
function random(): number {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
  return seed / 2 ** 32
}

/** The word of rank r comes about 1/r as often as the first. */
function word(): string {
  return `w${Math.floor(Math.exp(random() * Math.log(VOCABULARY))).toString(36)}`
}

function text(words: number): string {
  return Array.from({ length: words }, word).join(' ')
}

const topics = Array.from({ length: TOPICS }, () => Float32Array.from({ length: LENGTH }, () => random() - 0.5))

/** Near one of the topics. */
function vector(): Float32Array {
  const topic = topics[Math.floor(random() * TOPICS)] ?? new Float32Array(LENGTH)
  return topic.map((value) => value + (random() - 0.5) * 0.5)
}

async function fill(index: SqliteIndex): Promise<void> {
  const generation = await index.prepare()
  const at = '2026-01-01T00:00:00.000Z'
  for (let log = 0; log * LOG_ROWS < ENTRIES; log++) {
    const rows = Array.from({ length: LOG_ROWS }, (_none, place): MemoryRow => {
      const of = { handle: `run_${log}.e${place}`, part: 0, kind: 'message', threadId: `thread_${log}` } as const
      return { ...of, at, text: text(30), sources: [] }
    })
    const state = { seq: LOG_ROWS, began: at, threadId: `thread_${log}`, sources: [] }
    const update = { log: `run:run_${log}`, resourceId: `user_${log % OWNERS}`, after: 0, state, rows, forgotten: [] }
    await index.put(update, generation)
  }
}

async function embedAll(index: SqliteIndex): Promise<void> {
  for (;;) {
    const rows = await index.withoutVector('all', 5000)
    if (rows.length === 0) return
    await index.putVectors(rows.map(({ id }) => ({ id, vector: vector() })))
  }
}

/** Prints the median and the 95th percentile of the time and of the CPU time of searches, in ms. */
async function measure(title: string, search: () => Promise<unknown>): Promise<void> {
  await search()
  const wall: number[] = []
  const cpu: number[] = []
  for (let query = 0; query < QUERIES; query++) {
    const [begun, used] = [performance.now(), process.cpuUsage()]
    await search()
    const { user, system } = process.cpuUsage(used)
    wall.push(performance.now() - begun)
    cpu.push((user + system) / 1000)
  }
  const show = (values: readonly number[]): string =>
    [0.5, 0.95]
      .map((share) => values.toSorted((a, b) => a - b)[Math.floor(share * values.length)]?.toFixed(1))
      .join(' / ')
  console.log(`| ${title} | ${show(wall)} | ${show(cpu)} |`)
}

const folder = mkdtempSync(join(tmpdir(), 'memory-'))
const path = join(folder, 'memory.db')
const index = new SqliteIndex(path)
try {
  let begun = performance.now()
  await fill(index)
  console.log(`${ENTRIES} texts were indexed in ${((performance.now() - begun) / 1000).toFixed(0)} s.`)
  if (WITH_VECTORS) {
    begun = performance.now()
    await embedAll(index)
    console.log(`Their vectors were stored in ${((performance.now() - begun) / 1000).toFixed(0)} s.`)
  }
  console.log(`The file has ${(statSync(path).size / 1e6).toFixed(0)} MB.`)
  console.log(`\n| ${QUERIES} searches | median / p95, ms | CPU, ms |\n| --- | --- | --- |`)
  const owner = (): Scope => ({ resourceId: `user_${Math.floor(random() * OWNERS)}`, threadId: null })
  const byWords = (scope: Scope) => index.search(searchWords(text(6)), scope, WITH_VECTORS ? FUSED : LIMIT)
  await measure('full text, one owner', () => byWords(owner()))
  await measure('full text, all owners', () => byWords('all'))
  if (WITH_VECTORS) {
    const both = async (scope: Scope) =>
      fuseRanks([await byWords(scope), await index.near(vector(), scope, FUSED)], LIMIT)
    await measure('full text and vectors, one owner', () => both(owner()))
    await measure('full text and vectors, all owners', () => both('all'))
  }
} finally {
  await index.close()
  rmSync(folder, { recursive: true, force: true })
}
