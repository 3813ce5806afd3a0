import { CLEAR } from './clear.js'
import type { LogCodec, RecordCodec, RecordPlace } from './log-codec.js'

/** The codec of a store whose records may have been written by others. */
export class StoreCodec implements RecordCodec {
  #current: RecordCodec
  /** Those before it: their records may still be there. */
  #former: readonly RecordCodec[] = []

  constructor(codec: RecordCodec) {
    this.#current = codec
  }

  static async load(cipher: LogCodec | undefined): Promise<StoreCodec> {
    return new StoreCodec((await cipher?.load()) ?? CLEAR)
  }

  /** True if records are stored as they are. */
  get isClear(): boolean {
    return this.#current === CLEAR
  }

  get foreignOwners(): RecordCodec['foreignOwners'] {
    return this.#current.foreignOwners
  }

  /** Encodes by another codec from now on. */
  async change(cipher: LogCodec): Promise<void> {
    const current = await cipher.load()
    this.#former = [this.#current, ...this.#former]
    this.#current = current
  }

  encode(json: string, place: RecordPlace): string {
    return this.#current.encode(json, place)
  }

  decode(stored: string, place: RecordPlace): string {
    try {
      return this.#current.decode(stored, place)
    } catch (error) {
      for (const codec of this.#former) {
        try {
          return codec.decode(stored, place)
        } catch {
          // The error of the current codec is thrown.
        }
      }
      throw error
    }
  }

  isCurrent(stored: string): boolean {
    return this.#current.isCurrent(stored)
  }

  ownerText(resourceId: string): string {
    return this.#current.ownerText(resourceId)
  }

  /** A stored record in the form of the current codec. */
  renewed(stored: string, place: RecordPlace): string {
    return this.isCurrent(stored) ? stored : this.encode(this.decode(stored, place), place)
  }
}
