import type { HarnessStream, InputMessage, InputPort } from '../../index.js'

/** Ended runs whose unread messages are kept, at most. */
const MOST_KEPT = 1_000

/** The input ports of runs in progress, and the messages that ended runs have not read. */
export class Inputs {
  readonly #open = new Map<string, InputPort>()
  readonly #returned = new Map<string, readonly InputMessage[]>()

  add({ runId, result }: HarnessStream<unknown>, port: InputPort): void {
    this.#open.set(runId, port)
    const end = (): void => {
      const unread = port.close()
      if (this.#open.get(runId) === port) this.#open.delete(runId)
      if (unread.length > 0) this.#keep(runId, unread)
    }
    result.then(end, end)
  }

  /** False if the run is not in progress here. */
  send(runId: string, message: InputMessage): boolean {
    const port = this.#open.get(runId)
    port?.send(message)
    return port !== undefined
  }

  returned(runId: string): readonly InputMessage[] {
    return this.#returned.get(runId) ?? []
  }

  #keep(runId: string, unread: readonly InputMessage[]): void {
    this.#returned.set(runId, unread)
    const [oldest] = this.#returned.keys()
    if (this.#returned.size > MOST_KEPT && oldest !== undefined) this.#returned.delete(oldest)
  }
}
