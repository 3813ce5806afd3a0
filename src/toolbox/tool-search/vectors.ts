import { messageOf } from '#contracts/errors.js'

/** The vectors of texts, in their order: all of one length. */
export type EmbedTools = (
  texts: readonly string[],
  options: { readonly signal?: AbortSignal | undefined },
) => Promise<readonly (readonly number[] | Float32Array)[]>

/** Texts that are embedded together. */
const TOGETHER = 64

/**
 * The vectors of texts, of length 1. Rejects with an `Error` that says what was expected if `embed` fails, or returns anything but a
 * vector for each text.
 */
export async function vectorsOf(
  texts: readonly string[],
  embed: EmbedTools,
  signal: AbortSignal,
): Promise<readonly Float32Array[]> {
  const vectors: Float32Array[] = []
  for (let start = 0; start < texts.length; start += TOGETHER) {
    signal.throwIfAborted()
    const some = texts.slice(start, start + TOGETHER)
    const given = await embed(some, { signal }).catch((cause: unknown) => {
      throw new Error(`\`embed\` of the tool search failed: ${messageOf(cause)}`, { cause })
    })
    if (given.length !== some.length)
      throw new Error(`Expected \`embed\` of the tool search to return ${some.length} vectors, got ${given.length}.`)
    vectors.push(...given.map(unitVector))
  }
  const length = vectors[0]?.length ?? 0
  const odd = vectors.find((vector) => vector.length !== length || !vector.every(Number.isFinite))
  if (odd === undefined) return vectors
  throw new Error(
    `Expected \`embed\` of the tool search to return vectors of ${length} numbers, got one of ${odd.length}.`,
  )
}

function unitVector(given: readonly number[] | Float32Array): Float32Array {
  const vector = Float32Array.from(given)
  const length = Math.hypot(...vector)
  return length > 0 ? vector.map((each) => each / length) : vector
}

/** The places of the vectors, the nearest to `query` first. */
export function nearest(query: Float32Array, vectors: readonly Float32Array[]): readonly number[] {
  return vectors
    .map((vector, place) => ({
      place,
      score: vector.reduce((sum, each, index) => sum + each * (query[index] ?? 0), 0),
    }))
    .sort((one, other) => other.score - one.score || one.place - other.place)
    .map(({ place }) => place)
}

/** How fast a place in one ranking stops to matter: the constant of reciprocal rank fusion. */
const FLATNESS = 60

/** Several rankings as one, by reciprocal rank fusion: what one of them lacks is last there. */
export function fused(rankings: readonly (readonly number[])[]): readonly number[] {
  const scores = new Map<number, number>()
  for (const ranking of rankings)
    ranking.forEach((place, rank) => scores.set(place, (scores.get(place) ?? 0) + 1 / (FLATNESS + rank + 1)))
  return [...scores].sort(([one, score], [other, best]) => best - score || one - other).map(([place]) => place)
}
