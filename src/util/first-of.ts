/** The first `count` of any number of items in an order, and how many there were: memory is bounded by `count`. */
export class FirstOf<Item> {
  readonly #count: number
  readonly #compare: (left: Item, right: Item) => number
  #kept: Item[] = []
  #total = 0

  constructor(count: number, compare: (left: Item, right: Item) => number) {
    this.#count = count
    this.#compare = compare
  }

  get total(): number {
    return this.#total
  }

  add(item: Item): void {
    this.#total++
    this.#kept.push(item)
    // Sorting at every second `count` items costs a comparison or so for each.
    if (this.#kept.length >= this.#count * 2) this.#kept = this.items()
  }

  /** In order. */
  items(): Item[] {
    return this.#kept.toSorted(this.#compare).slice(0, this.#count)
  }
}
