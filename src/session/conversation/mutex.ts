export const doNothing = (): void => undefined

/** Pieces of work that are done one after the other, in the order in which they came. */
export class Mutex {
  readonly #onEnd: () => void
  #last: Promise<void> = Promise.resolve()
  #count = 0

  /** `onEnd` is called at the end of each turn. */
  constructor(onEnd: () => void) {
    this.#onEnd = onEnd
  }

  /** Something is being done, or waits for its turn. */
  get areTaken(): boolean {
    return this.#count > 0
  }

  /** Resolves when everything so far is done. */
  get over(): Promise<void> {
    return this.#last
  }

  /** Resolves when everything before is done; the given function ends the turn. */
  async take(): Promise<() => void> {
    const before = this.#last
    let end = doNothing
    this.#last = new Promise((resolve) => (end = resolve))
    this.#count += 1
    await before
    return () => {
      this.#count -= 1
      this.#onEnd()
      end()
    }
  }
}
