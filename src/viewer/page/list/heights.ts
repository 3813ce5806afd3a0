/** The heights of the rows of a list: measured ones, and guesses for rows that were never on screen. */
export class Heights {
  readonly #heights: Float64Array
  readonly #tops: Float64Array
  /** Tops up to and including this row are right. */
  #valid = 0

  constructor(count: number, heightOf: (index: number) => number) {
    this.#heights = Float64Array.from({ length: count }, (_, index) => heightOf(index))
    this.#tops = new Float64Array(count + 1)
  }

  get count(): number {
    return this.#heights.length
  }

  /** Sets a measured height, and says whether it is another one. */
  set(index: number, height: number): boolean {
    if (Math.abs((this.#heights[index] ?? 0) - height) < 0.5) return false
    this.#heights[index] = height
    this.#valid = Math.min(this.#valid, index)
    return true
  }

  /** The distance of a row from the top, in px; of the row after the last, the height of all. */
  top(index: number): number {
    const last = Math.min(Math.max(index, 0), this.count)
    for (; this.#valid < last; this.#valid += 1)
      this.#tops[this.#valid + 1] = (this.#tops[this.#valid] ?? 0) + (this.#heights[this.#valid] ?? 0)
    return this.#tops[last] ?? 0
  }

  /** The row at a distance from the top. */
  at(y: number): number {
    this.top(this.count)
    let [low, high] = [0, Math.max(0, this.count - 1)]
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if ((this.#tops[middle] ?? 0) <= y) low = middle
      else high = middle - 1
    }
    return low
  }
}
