import { listenToAbort } from '../abort.js'

interface Line {
  taken: number
  readonly waiting: (() => void)[]
}

/** Work under a limit: at most so much at once for each key, in the order of asking. */
export class Slots {
  readonly #limit: number
  readonly #lines = new Map<string, Line>()

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Does `work` once there is room for it. Rejects with the reason of `signal` when that is aborted before. */
  async within<T>(key: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    await this.#take(key, signal)
    try {
      return await work()
    } finally {
      this.#release(key)
    }
  }

  #take(key: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    const line: Line = this.#lines.get(key) ?? { taken: 0, waiting: [] }
    this.#lines.set(key, line)
    if (line.taken < this.#limit) {
      line.taken += 1
      return Promise.resolve()
    }
    return new Promise((resolve, reject) => {
      const beginTurn = (): void => {
        stopListening()
        resolve()
      }
      const stopListening = listenToAbort(signal, () => {
        stopListening()
        line.waiting.splice(line.waiting.indexOf(beginTurn), 1)
        reject(signal.reason as Error)
      })
      line.waiting.push(beginTurn)
    })
  }

  /** The slot goes to the next in line; an empty line is deleted. */
  #release(key: string): void {
    const line = this.#lines.get(key)
    if (line === undefined) return
    const next = line.waiting.shift()
    if (next !== undefined) return next()
    line.taken -= 1
    if (line.taken === 0) this.#lines.delete(key)
  }
}
