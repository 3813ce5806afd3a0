import { createInterface } from 'node:readline'
import type { Interface } from 'node:readline'

/** Lines that are typed, or that a pipe has. Nobody else may read the input meanwhile: `release` it before somebody is asked. */
export class TypedLines {
  readonly #input: NodeJS.ReadStream
  readonly #lines: string[] = []
  #reader: Interface | null = null
  #hasEnded = false
  #wake: (() => void) | null = null

  constructor(input: NodeJS.ReadStream) {
    this.#input = input
  }

  /** The next line; null at the end of the input. */
  async next(): Promise<string | null> {
    for (;;) {
      const line = this.#lines.shift()
      if (line !== undefined) return line
      if (this.#hasEnded) return null
      this.open()
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  /** Leaves the input to others, until it is opened again. */
  release(): void {
    const reader = this.#reader
    this.#reader = null
    reader?.close()
    this.#input.pause()
  }

  /** Reads again: lines that are typed meanwhile are kept. */
  open(): void {
    if (this.#reader !== null) return
    const reader = createInterface({ input: this.#input, terminal: false })
    this.#reader = reader
    reader.on('line', (line) => {
      this.#lines.push(line)
      this.#wake?.()
    })
    reader.on('close', () => {
      if (this.#reader !== reader) return
      this.#hasEnded = true
      this.#wake?.()
    })
  }
}
