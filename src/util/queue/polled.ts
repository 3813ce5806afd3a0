import { isAborted, onAbort } from '../abort.js'

/** Wakes one reader that waits; a ring before it waits counts too. */
export class Bell {
  #hasRung = false
  #wake: (() => void) | null = null

  readonly ring = (): void => {
    this.#hasRung = true
    this.#wake?.()
  }

  /** Resolves after a ring, or after `ms`. */
  async wait(ms: number | null = null): Promise<void> {
    if (!this.#hasRung) {
      let timer: NodeJS.Timeout | undefined
      await new Promise<void>((resolve) => {
        this.#wake = resolve
        if (ms !== null) timer = setTimeout(resolve, ms)
      })
      clearTimeout(timer)
      this.#wake = null
    }
    this.#hasRung = false
  }
}

/** How a log that cannot be followed is read again and again. */
export interface Polling {
  /** Number of the last event that the reader has. */
  readonly after: number
  readonly signal: AbortSignal | undefined
  /** The time before the log is read again, in ms: shorter after an event, longer while nothing happens; null: only after a ring. */
  readonly shortestMs: number
  readonly longestMs: number | null
  /** Rings when the log should be read at once. */
  readonly bell?: Bell
  /** A value that changes whenever events are stored: without a change the log is not read. Default: always read. */
  readonly version?: (() => string) | undefined
}

/** The events of a log as they are stored, by whatever process. */
export async function* pollEvents<Event extends { readonly seq: number }>(
  read: (after: number) => AsyncIterable<Event>,
  { after, signal, shortestMs, longestMs, bell = new Bell(), version }: Polling,
): AsyncGenerator<Event, void, undefined> {
  const stopListening = onAbort(signal, bell.ring)
  try {
    let last = after
    let lastVersion: string | undefined
    let waitMs = shortestMs
    while (!isAborted(signal)) {
      const first = last
      const present = version?.()
      if (present === undefined || present !== lastVersion)
        for await (const event of read(last)) {
          if (isAborted(signal)) return
          last = event.seq
          yield event
        }
      lastVersion = present
      waitMs = last > first ? shortestMs : Math.min(waitMs * 1.5, longestMs ?? 0)
      await bell.wait(longestMs === null ? null : waitMs)
    }
  } finally {
    stopListening()
  }
}
