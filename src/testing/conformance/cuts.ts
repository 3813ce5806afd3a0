import type { Chance } from './chance.js'

/** How bytes arrive. */
export type Cut = (bytes: Buffer) => readonly Buffer[]

export const byteByByte: Cut = (bytes) => Array.from(bytes, (_, index) => bytes.subarray(index, index + 1))

/** In pieces of up to `most` bytes, which heed neither characters nor lines. */
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
export function firstOf(share: number): Cut {
  return (bytes) => [bytes.subarray(0, Math.floor(bytes.length * share))]
}
