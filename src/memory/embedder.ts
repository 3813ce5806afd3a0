import { HarnessError } from '../index.js'
import type { FoundRow, MemoryIndex, Scope } from './index-port.js'

/** The vectors of texts, in their order: all of one length. */
export type Embed = (
  texts: readonly string[],
  options: { readonly signal?: AbortSignal | undefined },
) => Promise<readonly (readonly number[] | Float32Array)[]>

/** Texts that are embedded together. */
const TOGETHER = 64
/** Dampens the first places of a list when lists are fused: the usual value. */
const DAMPING = 60

/** Keeps the vectors of an index complete. */
export class Embedder {
  readonly #index: MemoryIndex
  readonly #embed: Embed

  constructor(index: MemoryIndex, embed: Embed) {
    this.#index = index
    this.#embed = embed
  }

  /** Embeds the rows that have no vector yet. */
  async complete(scope: Scope, signal?: AbortSignal): Promise<void> {
    for (;;) {
      signal?.throwIfAborted()
      const rows = await this.#index.withoutVector(scope, TOGETHER)
      if (rows.length === 0) return
      const vectors = await this.vectors(
        rows.map(({ text }) => text),
        signal,
      )
      await this.#index.putVectors(rows.flatMap(({ id }, place) => withId(id, vectors[place])))
    }
  }

  /** Throws `store_failure` if `embed` fails, or returns anything but a vector for each text. */
  async vectors(texts: readonly string[], signal?: AbortSignal): Promise<readonly Float32Array[]> {
    const given = await this.#embed(texts, { signal }).catch((cause: unknown) => {
      throw new HarnessError('store_failure', `\`embed\` of the memory failed: ${String(cause)}`, { cause })
    })
    const vectors = given.map((vector) => Float32Array.from(vector))
    const [first] = vectors
    const isSound = vectors.every(
      (each) => each.length > 0 && each.length === first?.length && each.every(Number.isFinite),
    )
    if (vectors.length === texts.length && isSound) return vectors
    const message = `Expected \`embed\` of the memory to return ${texts.length} vectors of one length, got ${vectors.length}.`
    throw new HarnessError('store_failure', message)
  }
}

function withId(
  id: number,
  vector: Float32Array | undefined,
): { readonly id: number; readonly vector: Float32Array }[] {
  return vector === undefined ? [] : [{ id, vector }]
}

/** One list of several, by the places that a row has in them (reciprocal rank fusion). */
export function fused(lists: readonly (readonly FoundRow[])[], limit: number): readonly FoundRow[] {
  const scores = new Map<number, { readonly row: FoundRow; score: number }>()
  for (const list of lists) {
    for (const [place, row] of list.entries()) {
      const known = scores.get(row.id) ?? { row, score: 0 }
      known.score += 1 / (DAMPING + place + 1)
      scores.set(row.id, known)
    }
  }
  const best = [...scores.values()].sort((left, right) => right.score - left.score)
  return best.slice(0, limit).map(({ row }) => row)
}
