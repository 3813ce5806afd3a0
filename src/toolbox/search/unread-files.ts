/** Files that could not be read: how many, and what was wrong with the first. Never what is in them. */
export class UnreadFiles {
  #first: string | undefined
  #count = 0

  add(problem: string): void {
    this.#first ??= problem
    this.#count++
  }

  /** Empty when there are none. */
  get text(): string {
    if (this.#first === undefined) return ''
    return this.#count === 1 ? this.#first : `${this.#first} (and ${this.#count - 1} more that could not be read)`
  }
}
