/** The source of a run's time, ids and randomness; a replay provides the recorded ones. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number
  /** The same as ISO 8601 in UTC. */
  iso(): string
  /** 32 random hex digits. */
  id(): string
}

/** The machine's own clock. The text is created once per millisecond, because streams need it thousands of times. */
export function systemClock(): Clock {
  let lastMs = -1
  let lastText = ''
  return {
    now: () => Date.now(),
    iso() {
      const ms = Date.now()
      if (ms !== lastMs) [lastMs, lastText] = [ms, new Date(ms).toISOString()]
      return lastText
    },
    id: () => globalThis.crypto.randomUUID().replaceAll('-', ''),
  }
}
