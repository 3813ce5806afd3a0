import type { LogRef } from '#core/log/ref.js'
import { having } from '#util/validate.js'

/** Where a record is stored. What was encrypted for one place cannot be read at another. */
export interface RecordPlace {
  readonly ref: LogRef
  readonly part: 'event' | 'digest' | 'post' | 'index'
  /** Number of the event, or of the last event of a digest; the id of a post; the state of the files of which an index speaks. */
  readonly key: number | string
}

/** Stands between a store and its bytes. Records are JSON texts; what is stored of them is a text too, of one line. */
export interface RecordCodec {
  encode(json: string, place: RecordPlace): string
  /** Throws `invalid_log` for what this codec has not encoded for this place. */
  decode(stored: string, place: RecordPlace): string
  /** False if `encode` would store it in another form. */
  isCurrent(stored: string): boolean
  /** What a column stores of an owner, the `resourceId`. */
  ownerText(resourceId: string): string
  /** Ranges of texts, from the first to below the second, that another codec may have stored of any owner. */
  readonly foreignOwners: readonly (readonly [from: string, below: string])[]
}

/** The `cipher` option of the stores, which load it when they are opened: `encryption`, or `compression`. */
export interface LogCodec {
  load(): Promise<RecordCodec>
}

/** What `rekey` has done. */
export interface Rewriting {
  /** Number of logs that were written anew. */
  readonly rewritten: number
  /** Logs that stay as they are: a process owns them, or they cannot be read. */
  readonly left: readonly LogRef[]
  /** What the files had held is overwritten. False in PostgreSQL until its next vacuum, and if other processes kept SQLite from doing so. */
  readonly erased: boolean
}

/** A log whose records can be written anew in the form of another codec, which it has from then on. */
export interface Rewritable {
  rewrite(codec: LogCodec): Promise<Rewriting>
}

export const CIPHER = having<LogCodec>('`encryption({ … })` or `compression()`', 'load')
