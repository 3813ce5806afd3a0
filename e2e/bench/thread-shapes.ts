// Conversations with the shape of discussions of issues: their lengths and the sizes of their messages are lognormal, by a seed.

export interface ThreadShape {
  /** Characters of each message: a person's, the reply, and so on. */
  readonly sizes: readonly number[]
}

const WORDS =
  'the call returns an error when a stream is closed before its first event and the log has no entry for it so the next run reads nothing `await run.result` rejects'.split(
    ' ',
  )

/** A generator of numbers in [0, 1): mulberry32. */
export function randomBy(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Threads of 20 to 500 messages (median 50) of 20 to 20,000 characters (median 400). */
export function threadShapes(count: number, seed = 1): readonly ThreadShape[] {
  const random = randomBy(seed)
  const lognormal = (median: number, sigma: number): number => {
    const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
    return median * Math.exp(sigma * normal)
  }
  const within = (value: number, least: number, most: number): number =>
    Math.round(Math.min(most, Math.max(least, value)))
  return Array.from({ length: count }, () => {
    const messages = 2 * Math.round(within(lognormal(50, 0.9), 20, 500) / 2)
    return { sizes: Array.from({ length: messages }, () => within(lognormal(400, 1.1), 20, 20_000)) }
  })
}

/** A text of so many characters, different for each number. */
export function textOfSize(size: number, number: number): string {
  const random = randomBy(number)
  let text = ''
  while (text.length < size) text += `${WORDS[Math.floor(random() * WORDS.length)] ?? ''} `
  return text.slice(0, size)
}
