/** Whole numbers from `least` to `most`: the same ones for the same seed, so that a surprise can be repeated. */
export function randomNumbers(seed: number): (least: number, most: number) => number {
  let state = seed >>> 0
  return (least, most) => {
    // Of a linear congruential generator the upper bits are the good ones.
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return least + Math.floor((state / 2 ** 32) * (most - least + 1))
  }
}
