/** Reproducible random values: the same seed gives the same numbers (mulberry32). */
export class Chance {
  #state: number

  /** `seed` is a whole number. */
  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** From 0 to below 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }

  /** A whole number from `least` to `most`. */
  int(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1))
  }

  /** True in `share` of all cases. */
  happens(share: number): boolean {
    return this.next() < share
  }

  pick<T>(list: readonly [T, ...T[]]): T {
    return list[this.int(0, list.length - 1)] ?? list[0]
  }

  /** From `least` to `most` items. */
  several<T>(least: number, most: number, make: (index: number) => T): T[] {
    return Array.from({ length: this.int(least, most) }, (_, index) => make(index))
  }
}

/** How bytes arrive. */
export type Cut = (bytes: Buffer) => readonly Buffer[]

export const byteByByte: Cut = (bytes) => Array.from(bytes, (_, index) => bytes.subarray(index, index + 1))

/** In pieces of up to `most` bytes, regardless of characters and lines. */
export function atRandom(chance: Chance, most: number): Cut {
  return (bytes) => {
    const pieces: Buffer[] = []
    for (let from = 0; from < bytes.length;) {
      const to = from + chance.int(1, most)
      pieces.push(bytes.subarray(from, to))
      from = to
    }
    return pieces
  }
}

/** The first `share` of the bytes, from 0 to 1. */
export function cutToShare(share: number): Cut {
  return (bytes) => [bytes.subarray(0, Math.floor(bytes.length * share))]
}
