import type { Generation, LogState, MemoryIndex, Row } from './index-port.js'
import type { MemoryText } from './rows.js'
import { pieces } from './words.js'

/** Rows that are stored together. */
const TOGETHER = 500

interface BatchOptions {
  /** The key of the log. */
  readonly log: string
  readonly resourceId: string | null
  readonly generation: Generation
  /** The last event that the index has. */
  readonly after: number
  readonly redact: (text: string) => string
}

/** Rows of a log on their way into the index. */
export class Batch {
  readonly #index: MemoryIndex
  readonly #options: BatchOptions
  #after: number
  #state: LogState | null = null
  #rows: Row[] = []
  #forgotten: string[] = []
  #isRefused = false

  constructor(index: MemoryIndex, options: BatchOptions) {
    this.#index = index
    this.#options = options
    this.#after = options.after
  }

  /** Adds the texts of the event at which the log has this state. */
  async add(texts: readonly MemoryText[], state: LogState, forgotten: readonly string[] = []): Promise<void> {
    for (const { handle, kind, at, text, sources, threadId = state.threadId } of texts) {
      pieces(this.#options.redact(text)).forEach((piece, part) => {
        this.#rows.push({ handle, part, kind, at, text: piece, sources, threadId })
      })
    }
    this.#forgotten.push(...forgotten)
    this.#state = state
    if (this.#rows.length >= TOGETHER) await this.flush()
  }

  /** Stores what there is. False if another process was faster, or rows were erased. */
  async flush(): Promise<boolean> {
    if (this.#isRefused || this.#state === null) return !this.#isRefused
    const { log, resourceId, generation } = this.#options
    const update = {
      log,
      resourceId,
      after: this.#after,
      state: this.#state,
      rows: this.#rows,
      forgotten: this.#forgotten,
    }
    this.#isRefused = !(await this.#index.put(update, generation))
    this.#after = this.#state.seq
    this.#state = null
    this.#rows = []
    this.#forgotten = []
    return !this.#isRefused
  }
}
