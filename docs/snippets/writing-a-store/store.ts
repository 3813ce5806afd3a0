import { HarnessError } from 'thinharness'
import type { AppendOptions, DurableEvent, LogRef, ReadOptions, RunLog } from 'thinharness'

/** A database that changes a value only if nobody else has changed it. Versions count from 0, for a missing key. */
export interface Database {
  get(key: string): Promise<{ readonly value: string; readonly version: number } | null>
  /** False if the version is no longer this one. */
  set(key: string, value: string, version: number): Promise<boolean>
}

interface Stored {
  readonly events: readonly DurableEvent[]
  readonly claim: { readonly owner: string; readonly untilMs: number } | null
}

/** Runs in a database of key and value. */
export class KeyValueLog implements RunLog {
  readonly outlives = true
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async append(ref: LogRef, events: readonly DurableEvent[], { owner }: AppendOptions = {}): Promise<void> {
    await this.#change(ref, (stored) => {
      if (stored.claim?.owner !== owner) throw new HarnessError('run_owned', `Run \`${ref.id}\` has another owner.`)
      let last = stored.events.at(-1)?.seq
      for (const { seq } of events) {
        // A log may begin at any event.
        if (last !== undefined && seq !== last + 1)
          throw new HarnessError(seq === 1 ? 'run_exists' : 'store_failure', `Event ${seq} does not follow ${last}.`)
        last = seq
      }
      return { ...stored, events: [...stored.events, ...events] }
    })
  }

  async *read(ref: LogRef, { after = 0 }: ReadOptions = {}): AsyncGenerator<DurableEvent> {
    const { events } = (await this.#find(ref)).stored
    for (const event of events) if (event.seq > after) yield event
  }

  async claim(ref: LogRef, owner: string, ttlMs: number): Promise<boolean> {
    let isGranted = false
    await this.#change(ref, (stored) => {
      const { claim } = stored
      const isOthers = claim !== null && claim.owner !== owner
      isGranted = !isOthers || (ttlMs > 0 && claim.untilMs <= Date.now())
      if (!isGranted) return stored
      return { ...stored, claim: ttlMs === 0 ? null : { owner, untilMs: Date.now() + ttlMs } }
    })
    return isGranted
  }

  /** Reads, changes and writes, again if somebody else has written in between. */
  async #change(ref: LogRef, change: (stored: Stored) => Stored): Promise<void> {
    for (;;) {
      const { stored, version } = await this.#find(ref)
      if (await this.#database.set(keyOf(ref), JSON.stringify(change(stored)), version)) return
    }
  }

  async #find(ref: LogRef): Promise<{ readonly stored: Stored; readonly version: number }> {
    const found = await this.#database.get(keyOf(ref))
    if (found === null) return { stored: { events: [], claim: null }, version: 0 }
    return { stored: JSON.parse(found.value) as Stored, version: found.version }
  }
}

function keyOf({ kind, id }: LogRef): string {
  return `${kind}:${id}`
}
