import type { FollowOptions, LogEvent, ReadOptions } from '../run/log/log.js'
import type { LogRef } from '../run/log/ref.js'
import { keyOf } from '../run/log/ref.js'

/** The shortest time between two looks at a log that other processes write to, in ms. */
const SHORTEST_MS = 25

export interface FollowedLog<Event> {
  readonly read: (options: ReadOptions) => AsyncIterable<Event>
  /** The longest time between two looks at the log, in ms; null if only this process writes to it. */
  readonly longestMs: number | null
  /** A value that changes whenever events are stored: without a change the log is not read. Default: always read. */
  readonly version?: () => string
}

/** Readers that wait for the next events of logs, and are woken when this process stores some. */
export class Followers {
  readonly #waiting = new Map<string, Set<() => void>>()

  /** Wakes the readers of a log. */
  wake(ref: LogRef): void {
    if (this.#waiting.size === 0) return
    for (const listener of this.#waiting.get(keyOf(ref)) ?? []) listener()
  }

  async *follow<Event extends LogEvent>(
    ref: LogRef,
    { after = 0, signal }: FollowOptions,
    log: FollowedLog<Event>,
  ): AsyncGenerator<Event> {
    const bell = new Bell()
    const forget = this.#listen(keyOf(ref), bell.ring)
    signal?.addEventListener('abort', bell.ring)
    try {
      let seen = after
      let version: string | undefined
      let waitMs = SHORTEST_MS
      while (!isAborted(signal)) {
        bell.hasRung = false
        const before = log.version?.()
        const unseen = before === undefined || before !== version
        version = before
        const start = seen
        for await (const event of unseen ? log.read({ after: seen }) : []) {
          if (isAborted(signal)) return
          seen = event.seq
          yield event
        }
        waitMs = seen > start ? SHORTEST_MS : Math.min(waitMs * 1.5, log.longestMs ?? 0)
        await bell.wait(log.longestMs === null ? null : waitMs)
      }
    } finally {
      forget()
      signal?.removeEventListener('abort', bell.ring)
    }
  }

  #listen(key: string, listener: () => void): () => void {
    const listeners = this.#waiting.get(key) ?? new Set()
    this.#waiting.set(key, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0) this.#waiting.delete(key)
    }
  }
}

function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true
}

/** Wakes one reader that waits; a ring before it waits counts too. */
class Bell {
  hasRung = false
  #wake: (() => void) | null = null

  readonly ring = (): void => {
    this.hasRung = true
    this.#wake?.()
  }

  async wait(ms: number | null): Promise<void> {
    if (this.hasRung) return
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve) => {
      this.#wake = resolve
      if (ms !== null) timer = setTimeout(resolve, ms)
    })
    clearTimeout(timer)
    this.#wake = null
  }
}
