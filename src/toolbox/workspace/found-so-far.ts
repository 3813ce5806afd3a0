import type { ToolContext } from '../../tools/spec.js'
import type { Workspace } from './workspace.js'

/** Between two tellings, and before the first, in ms: what takes no longer has its result by then. */
const TELL_EVERY_MS = 200

/**
 * Tells the stream of a run (`tool_progress`) what a long search has met so far: how many finds, and the file of the latest.
 * They come in the order of the search, which is not that of the result.
 */
export class FoundSoFar {
  readonly #workspace: Workspace
  readonly #context: ToolContext
  #count = 0
  #toldAt = Date.now()

  constructor(workspace: Workspace, context: ToolContext) {
    this.#workspace = workspace
    this.#context = context
  }

  add(path: string): void {
    this.#count++
    const now = Date.now()
    if (now - this.#toldAt < TELL_EVERY_MS) return
    this.#toldAt = now
    this.#context.progress({ kind: 'found', count: this.#count, latest: this.#workspace.display(path) })
  }
}
