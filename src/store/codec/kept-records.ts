import type { LogEvent } from '#core/log/log.js'
import type { LogRef } from '#core/log/ref.js'
import type { JsonObject, JsonValue } from '#util/json.js'
import { placeOfEvent } from './clear.js'
import type { LogCodec, RecordPlace } from './log-codec.js'
import { StoreCodec } from './store-codec.js'

/** A record as a log in memory keeps it. */
interface Sealed extends JsonObject {
  readonly sealed: string
}

/** The fields of an event that the log itself reads, and the whole. */
interface SealedEvent extends LogEvent {
  readonly sealed: string
}

/** The records of a log in memory that has a cipher: all of them are encoded. */
export class KeptRecords {
  readonly #codec: StoreCodec

  private constructor(codec: StoreCodec) {
    this.#codec = codec
  }

  static async open(cipher: LogCodec): Promise<KeptRecords> {
    return new KeptRecords(await StoreCodec.load(cipher))
  }

  keep(value: JsonValue, ref: LogRef, part: 'digest' | 'post', key: number | string): Sealed {
    return { sealed: this.#sealed(value, { ref, part, key }) }
  }

  given(kept: JsonValue, ref: LogRef, part: 'digest' | 'post', key: number | string): JsonValue {
    return this.#opened((kept as Sealed).sealed, { ref, part, key }) as JsonValue
  }

  keepEvent(ref: LogRef, event: LogEvent): LogEvent {
    const { kind, seq, at, parentRunId, pending } = event as LogEvent & Readonly<Record<string, unknown>>
    const read = { ...(parentRunId !== undefined && { parentRunId }), ...(pending !== undefined && { pending }) }
    const kept: SealedEvent = { kind, seq, at, ...read, sealed: this.#sealed(event, placeOfEvent(ref, seq)) }
    return kept
  }

  givenEvent(ref: LogRef, event: LogEvent): LogEvent {
    return this.#opened((event as SealedEvent).sealed, placeOfEvent(ref, event.seq)) as LogEvent
  }

  #sealed(value: JsonValue | LogEvent, place: RecordPlace): string {
    return this.#codec.encode(JSON.stringify(value), place)
  }

  #opened(stored: string, place: RecordPlace): unknown {
    return JSON.parse(this.#codec.decode(stored, place))
  }
}
