/** Where a text occurs in a block, asked for ranges from the front to the back: the block is read once. */
export class Occurrences {
  readonly #bytes: Buffer
  readonly #text: Buffer
  #next: number

  constructor(bytes: Buffer, text: Buffer) {
    this.#bytes = bytes
    this.#text = text
    this.#next = bytes.indexOf(text)
  }

  /** Whether it lies between `start` and `end`. */
  isWithin(start: number, end: number): boolean {
    if (this.#next !== -1 && this.#next < start) this.#next = this.#bytes.indexOf(this.#text, start)
    return this.#next !== -1 && this.#next + this.#text.length <= end
  }
}
