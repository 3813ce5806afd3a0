// `npm run bench:retrieval -- <path of LoCoMo>`: how much of the labelled evidence of a question is among the ten best texts, by full text,
// by vectors and by both, next to plain BM25. `--words` leaves vectors out, `--vectors <folder>` for the packages and the vectors, `--postgres <url>` for an index there, `--conversations 3` for fewer.
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { FoundRow, MemoryIndex, MemoryRow, Scope } from '#extensions/memory/memory-index.js'
import { PostgresIndex } from '#extensions/memory/postgres/postgres-index.js'
import { FUSED, fuseRanks } from '#extensions/memory/search-memory.js'
import { SqliteIndex } from '#extensions/memory/sqlite/sqlite-index.js'
import { searchWords } from '#extensions/memory/search-words.js'
import { Bm25 } from './bm25.js'
import { embedderIn } from './embedder.js'
import { readLocomo } from './locomo.js'
import type { Conversation, Question } from './locomo.js'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    vectors: { type: 'string', default: join(tmpdir(), 'thinharness-vectors') },
    postgres: { type: 'string' },
    conversations: { type: 'string' },
    words: { type: 'boolean', default: false },
  },
})
const [path] = positionals
if (path === undefined) throw new TypeError('Expected the path of `locomo10.json`, or of the folder of its files.')

/** Texts that a model gets, at most. */
const BEST = 10

/** The ids of texts, the best first. */
type Finder = (question: Question, conversation: Conversation) => Promise<readonly string[]> | readonly string[]

const conversations = readLocomo(path).slice(0, Number(values.conversations ?? Infinity))
const embed = values.words ? null : await embedderIn(values.vectors)

async function fill(index: MemoryIndex): Promise<void> {
  for (const { name, turns } of conversations) {
    const at = '2026-01-01T00:00:00.000Z'
    const rows = turns.map(({ id: handle, text }): MemoryRow => {
      return { handle, part: 0, kind: 'message', threadId: name, at, text, sources: [] }
    })
    const state = { seq: 1, began: at, threadId: name, sources: [] }
    const update = { log: `run:${name}`, resourceId: name, after: 0, state, rows, forgotten: [] }
    await index.put(update, await index.prepare())
    if (embed === null) continue
    const stored = await index.withoutVector(scopeOf(name), turns.length)
    const vectors = await embed(stored.map(({ text }) => text))
    await index.putVectors(stored.map(({ id }, place) => ({ id, vector: vectors[place] ?? new Float32Array() })))
  }
}

function scopeOf(resourceId: string): Scope {
  return { resourceId, threadId: null }
}

function finders(index: MemoryIndex, name: string): readonly (readonly [string, Finder])[] {
  const handles = (rows: readonly FoundRow[]): readonly string[] => rows.map(({ handle }) => handle)
  const byWords = ({ text }: Question, { name: owner }: Conversation) =>
    index.search(searchWords(text), scopeOf(owner), FUSED)
  const byVectors = async ({ text }: Question, { name: owner }: Conversation) => {
    const [vector = new Float32Array()] = await vectorsOf(text)
    return index.near(vector, scopeOf(owner), FUSED)
  }
  const fullText: readonly [string, Finder] = [
    `${name}: full text`,
    async (...asked) => handles(await byWords(...asked)),
  ]
  if (embed === null) return [fullText]
  return [
    fullText,
    [`${name}: vectors`, async (...asked) => handles(await byVectors(...asked))],
    [
      `${name}: both`,
      async (...asked) => handles(fuseRanks([await byWords(...asked), await byVectors(...asked)], BEST)),
    ],
  ]
}

const questions = conversations.flatMap((each) => each.questions.map(({ text }) => text))
const questionVectors = new Map<string, Float32Array>()
async function vectorsOf(text: string): Promise<readonly Float32Array[]> {
  if (questionVectors.size === 0 && embed !== null)
    for (const [place, vector] of (await embed(questions)).entries())
      questionVectors.set(questions[place] ?? '', vector)
  return [questionVectors.get(text) ?? new Float32Array()]
}

/** The mean share of the evidence among the best texts, for each kind of question, and for all. */
async function recallOf(find: Finder): Promise<ReadonlyMap<string, number>> {
  const shares = new Map<string, number[]>()
  for (const conversation of conversations) {
    for (const question of conversation.questions) {
      const best = new Set((await find(question, conversation)).slice(0, BEST))
      const share = question.evidence.filter((id) => best.has(id)).length / question.evidence.length
      for (const kind of [question.kind, 'all']) shares.set(kind, [...(shares.get(kind) ?? []), share])
    }
  }
  return new Map([...shares].map(([kind, each]) => [kind, each.reduce((sum, one) => sum + one, 0) / each.length]))
}

const plain = new Map(conversations.map(({ name, turns }) => [name, new Bm25(turns)]))
const sqlite = new SqliteIndex(':memory:')
const postgres =
  values.postgres === undefined ? null : new PostgresIndex({ connectionString: values.postgres }, embed !== null)
const all: (readonly [string, Finder])[] = [
  ['plain BM25', ({ text }, { name }) => plain.get(name)?.search(text, BEST) ?? []],
]
try {
  for (const [index, name] of [
    [sqlite, 'SQLite'],
    [postgres, 'PostgreSQL'],
  ] as const) {
    if (index === null) continue
    await index.clear()
    await fill(index)
    all.push(...finders(index, name))
  }
  const turns = conversations.reduce((sum, each) => sum + each.turns.length, 0)
  console.log(
    `LoCoMo: ${conversations.length} conversations, ${turns} texts, ${questions.length} questions. Recall at ${BEST}, in %.\n`,
  )
  const kinds = ['all', 'one turn', 'several turns', 'time', 'open domain']
  console.log(`| | ${kinds.join(' | ')} |\n| --- |${' ---: |'.repeat(kinds.length)}`)
  for (const [title, find] of all) {
    const recall = await recallOf(find)
    console.log(`| ${title} | ${kinds.map((kind) => ((recall.get(kind) ?? 0) * 100).toFixed(1)).join(' | ')} |`)
  }
} finally {
  await sqlite.close()
  await postgres?.close()
}
