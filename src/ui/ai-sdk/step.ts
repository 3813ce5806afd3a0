import type { UiChunk } from './chunk.js'

/** The chunks of the present step of a message that hold if the reply of the step is taken back: they are told again. */
export class Step {
  readonly #kept = new Map<string, UiChunk>()
  isOpen = false

  begin(): void {
    this.isOpen = true
    this.#kept.clear()
  }

  /** Keeps a part that is not of the reply: data of child runs and of questions. */
  keep(chunk: UiChunk): void {
    if (!('data' in chunk) || chunk.id === undefined || chunk.transient === true) return
    if (chunk.type !== 'data-output') this.#kept.set(`${chunk.type} ${chunk.id}`, chunk)
  }

  /** What holds of the step, to be told again. */
  get kept(): readonly UiChunk[] {
    return [...this.#kept.values()]
  }
}
