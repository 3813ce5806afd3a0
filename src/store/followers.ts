import type { FollowOptions, LogEvent, ReadOptions } from '#core/log/log.js'
import type { LogRef } from '#core/log/ref.js'
import { keyOf } from '#core/log/ref.js'
import { Bell, pollEvents } from '#util/queue/polled.js'

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
    { read, longestMs, version }: FollowedLog<Event>,
  ): AsyncGenerator<Event> {
    const bell = new Bell()
    const stopListening = this.#listen(keyOf(ref), bell.ring)
    try {
      const polling = { after, signal, shortestMs: SHORTEST_MS, longestMs, bell, version }
      yield* pollEvents((last) => read({ after: last }), polling)
    } finally {
      stopListening()
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
