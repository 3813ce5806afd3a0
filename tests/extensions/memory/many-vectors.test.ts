import { expect, test } from 'vitest'
import type { MemoryRow, Scope } from '#extensions/memory/memory-index.js'
import { SqliteIndex } from '#extensions/memory/sqlite/sqlite-index.js'

/** `sqlite-vec` compares the vectors of all; those of one owner are few enough without it. */
const ROWS = 52_000
const OF_ONE = 26_000
const LENGTH = 32

let seed = 1
function random(): number {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
  return seed / 2 ** 32 - 0.5
}

function cosine(left: Float32Array, right: Float32Array): number {
  const dot = (a: Float32Array, b: Float32Array): number => a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0)
  return dot(left, right) / Math.sqrt(dot(left, left) * dot(right, right))
}

test('XM-37 among many vectors of all owners, the nearest are found, also far from all others', async () => {
  const index = new SqliteIndex(':memory:')
  const generation = await index.prepare()
  for (let log = 0; log < 2; log++) {
    const rows = Array.from({ length: OF_ONE }, (_none, place): MemoryRow => {
      const handle = `${log}.${place}`
      return { handle, part: 0, kind: 'message', threadId: 'one', at: '2026', text: handle, sources: [] }
    })
    const state = { seq: 1, began: '2026', threadId: 'one', sources: [] }
    await index.put({ log: `${log}`, resourceId: `user_${log}`, after: 0, state, rows, forgotten: [] }, generation)
  }
  const stored = await index.withoutVector('all', ROWS)
  const vectors = stored.map(({ id }) => ({ id, vector: Float32Array.from({ length: LENGTH }, () => random() + 0.2) }))
  await index.putVectors(vectors)
  const nearest = async (vector: Float32Array, scope: Scope = 'all') =>
    (await index.near(vector, scope, 50)).map(({ id }) => id)

  for (const { id, vector } of vectors.filter((_each, place) => place % 7001 === 0)) {
    const found = await nearest(vector)
    expect(found).toHaveLength(50)
    expect(found[0]).toBe(id)
    const [second, third] = found.slice(1).map((each) => vectors.find((one) => one.id === each)?.vector ?? vector)
    expect(cosine(vector, second ?? vector)).toBeGreaterThanOrEqual(cosine(vector, third ?? vector))
  }
  // All of them point the other way.
  expect(await nearest(new Float32Array(LENGTH).fill(-1))).toHaveLength(50)
  expect(await nearest(new Float32Array(LENGTH).fill(1), { resourceId: 'user_1', threadId: null })).toHaveLength(50)
  await index.close()
}, 60_000)
