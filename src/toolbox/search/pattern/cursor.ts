import { PatternError } from './syntax.js'

/** A place in a pattern's text, moved forward by its parsers. Counts code points, so that messages name characters. */
export class Cursor {
  readonly #points: readonly string[]
  #at = 0

  constructor(text: string) {
    this.#points = Array.from(text)
  }

  get atEnd(): boolean {
    return this.#at >= this.#points.length
  }

  /** The character `ahead` places on; empty behind the end. */
  peek(ahead = 0): string {
    return this.#points[this.#at + ahead] ?? ''
  }

  /** Takes one character; an error at the end. */
  take(expected: string): string {
    const char = this.peek()
    if (char === '') throw this.error(`the pattern ends where ${expected} was expected`)
    this.#at++
    return char
  }

  /** Takes `text` if it comes next. */
  eat(text: string): boolean {
    const points = Array.from(text)
    if (!points.every((point, index) => this.peek(index) === point)) return false
    this.#at += points.length
    return true
  }

  /** Takes all characters up to `end`, and `end` itself. */
  takeUntil(end: string, expected: string): string {
    let text = ''
    for (;;) {
      const char = this.take(expected)
      if (char === end) return text
      text += char
    }
  }

  error(problem: string): PatternError {
    return new PatternError(`${problem} (at character ${this.#at + 1})`)
  }
}
