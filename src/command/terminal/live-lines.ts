import { cut, widthOf } from './terminal.js'
import type { Terminal } from './terminal.js'

/** At most so often are lines written again, in ms. */
const FRAME_MS = 50

/**
 * Lines at the bottom of a terminal that are written again in place. A line that is done is written once above them, and scrolls away.
 * Without a terminal only lines that are done are written.
 */
export class LiveLines {
  readonly #terminal: Terminal
  #lines: readonly string[] = []
  #drawn: readonly string[] = []
  #timer: NodeJS.Timeout | null = null

  constructor(terminal: Terminal) {
    this.#terminal = terminal
  }

  /** Writes a line that is done. */
  done(line: string): void {
    if (!this.#terminal.isLive) return this.#terminal.say(line)
    this.#erase()
    this.#terminal.say(cut(line, this.#terminal.width - 1))
    this.#draw()
  }

  /** The lines that are not done yet; at most the height of the terminal, the last ones. */
  show(lines: readonly string[]): void {
    this.#lines = lines
    if (!this.#terminal.isLive) return
    this.#timer ??= setTimeout(() => {
      this.#timer = null
      this.#erase()
      this.#draw()
    }, FRAME_MS)
  }

  /** Removes the lines that are not done. */
  clear(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#lines = []
    if (this.#terminal.isLive) this.#erase()
  }

  #draw(): void {
    const { width, height } = this.#terminal
    const lines = this.#lines.slice(-(height - 2)).map((line) => cut(line, width - 1))
    if (lines.length > 0) this.#terminal.draw(`${lines.join('\n')}\n`)
    this.#drawn = lines
  }

  /** A terminal that became narrower has broken the lines: they take more rows. */
  #erase(): void {
    const { width } = this.#terminal
    const rows = this.#drawn.reduce((sum, line) => sum + Math.max(1, Math.ceil(widthOf(line) / width)), 0)
    if (rows > 0) this.#terminal.draw(`\u001B[${rows}A\r\u001B[J`)
    this.#drawn = []
  }
}
