import { OpenReply } from '../../util/queue/deltas.js'
import type { Mailbox } from '../../util/queue/mailbox.js'
import type { AnyRunEvent } from '../projection.js'

/** A run whose events this process sees as they come: what its readers need besides the log. */
export class LiveRun {
  readonly #reply = new OpenReply<AnyRunEvent>()
  readonly #readers = new Set<Mailbox<AnyRunEvent>>()
  #isClosed = false
  readonly runId: string

  constructor(runId: string) {
    this.runId = runId
  }

  /** The deltas of the reply that is arriving, joined by part. */
  get openReply(): readonly AnyRunEvent[] {
    return this.#reply.deltas
  }

  /** Adds each event of the run and its child runs to `box` from now on; returns how to stop. */
  listen(box: Mailbox<AnyRunEvent>): () => void {
    if (this.#isClosed) box.close()
    this.#readers.add(box)
    return () => void this.#readers.delete(box)
  }

  push(event: AnyRunEvent): void {
    if (event.runId === this.runId) this.#reply.push(event)
    for (const box of this.#readers) box.add(event)
  }

  /** No more events come. */
  close(): void {
    this.#isClosed = true
    for (const box of this.#readers) box.close()
  }
}
