/** How many pieces are joined at once. */
const TOGETHER = 256

/** A text that grows by many small pieces. They are joined some at a time: a string that is added to each time keeps them all. */
export class GrowingText {
  #text = ''
  #pieces: string[] = []

  add(piece: string): void {
    if (this.#pieces.push(piece) >= TOGETHER) this.#join()
  }

  get isEmpty(): boolean {
    return this.#text === '' && this.#pieces.length === 0
  }

  get whole(): string {
    if (this.#pieces.length > 0) this.#join()
    return this.#text
  }

  #join(): void {
    this.#text += this.#pieces.join('')
    this.#pieces = []
  }
}
