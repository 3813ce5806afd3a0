/** Returns numbers from 0 to below 1. */
export type Random = () => number

/** The same numbers for the same seed (mulberry32). */
export function randomOf(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

export function between(random: Random, least: number, most: number): number {
  return least + Math.floor(random() * (most - least + 1))
}

export function oneOf<Item>(random: Random, list: readonly [Item, ...Item[]]): Item
export function oneOf<Item>(random: Random, list: readonly Item[]): Item | undefined
export function oneOf<Item>(random: Random, list: readonly Item[]): Item | undefined {
  return list[Math.floor(random() * list.length)]
}

export function shuffled<Item>(random: Random, list: readonly Item[]): Item[] {
  return list
    .map((item) => ({ item, place: random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item)
}
