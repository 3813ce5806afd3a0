import type { ToolContext } from '#core/tools/tool-spec.js'
import type { Workspace } from './workspace.js'

/** Time between two events, and before the first, in ms: a shorter search emits none. */
const INTERVAL_MS = 200

/**
 * Emits the progress of a long search (`tool_progress`): the number of finds so far, and the file of the latest. They come in
 * the order of the search, which differs from that of the result.
 */
export class SearchProgress {
  readonly #workspace: Workspace
  readonly #context: ToolContext
  #count = 0
  #emittedAt = Date.now()

  constructor({ workspace, context }: { readonly workspace: Workspace; readonly context: ToolContext }) {
    this.#workspace = workspace
    this.#context = context
  }

  add(path: string): void {
    this.#count++
    const now = Date.now()
    if (now - this.#emittedAt < INTERVAL_MS) return
    this.#emittedAt = now
    this.#context.progress({ kind: 'found', count: this.#count, latest: this.#workspace.display(path) })
  }
}
