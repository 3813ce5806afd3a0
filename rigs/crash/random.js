/** Numbers from 0 to below 1 that are the same for the same seed (mulberry32). */
export function randomOf(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

export function between(random, least, most) {
  return least + Math.floor(random() * (most - least + 1))
}

export function oneOf(random, list) {
  return list[Math.floor(random() * list.length)]
}
