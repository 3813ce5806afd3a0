import { HarnessError } from '#contracts/errors.js'
import type { MemoryIndex, Scope } from './memory-index.js'

/** The vectors of texts, in their order: all of one length. */
export type Embed = (
  texts: readonly string[],
  options: { readonly signal?: AbortSignal | undefined },
) => Promise<readonly (readonly number[] | Float32Array)[]>

/** Texts that are embedded together. */
const TOGETHER = 64

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
