import { fileFailureOf, isMissing } from '../workspace/failure.js'
import type { Workspace } from '../workspace/workspace.js'

/** Files that could not be read: their number, and the problem of the first. Never their content. */
export class UnreadFiles {
  readonly #workspace: Workspace
  #first: string | undefined
  #count = 0

  constructor(workspace: Workspace) {
    this.#workspace = workspace
  }

  /** Reads a file. If it cannot be read, the search continues; a file that no longer exists is not a problem. */
  async unless(path: string, read: () => Promise<void>): Promise<void> {
    try {
      await read()
    } catch (error) {
      if (isMissing(error)) return
      const failure = fileFailureOf(error, this.#workspace.display(path))
      if (failure === undefined) throw error
      this.#add(failure.message)
    }
  }

  addCut(path: string): void {
    this.#add(`${this.#workspace.display(path)}: only the beginning of a very long line was searched`)
  }

  #add(problem: string): void {
    this.#first ??= problem
    this.#count++
  }

  /** Empty if there are none. */
  get text(): string {
    if (this.#first === undefined) return ''
    return this.#count === 1 ? this.#first : `${this.#first} (and ${this.#count - 1} more that could not be read)`
  }
}
