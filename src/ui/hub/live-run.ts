import type { AnyRunEvent } from '../projection.js'
import { OpenTurn } from './open-turn.js'

/** Who is told of the events of a run. */
export interface RunListener {
  add(event: AnyRunEvent): void
  /** No more events come. */
  close(): void
}

/** A run whose events this process sees as they come: what its readers need besides the log. */
export class LiveRun {
  readonly #open = new OpenTurn()
  readonly #listeners = new Set<RunListener>()
  readonly runId: string

  constructor(runId: string) {
    this.runId = runId
  }

  /** The deltas of the reply that is arriving, joined by part. */
  get deltas(): readonly AnyRunEvent[] {
    return this.#open.deltas
  }

  /** Tells `listener` of each event of the run and its child runs from now on; returns how to stop. */
  listen(listener: RunListener): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  push(event: AnyRunEvent): void {
    if (event.runId === this.runId) this.#open.push(event)
    for (const listener of this.#listeners) listener.add(event)
  }

  /** No more events come. */
  close(): void {
    for (const listener of this.#listeners) listener.close()
  }
}
