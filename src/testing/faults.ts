import type { JsonObject } from '../index.js'
import type { Reply } from './reply.js'

/** Something that goes wrong between a provider and its client. */
export type ProviderFault = StatusFault | BreakFault | DripFault

/** An answer of another kind than a reply. */
export interface StatusFault {
  readonly fault: 'status'
  readonly status: number
  /** Default: a sentence. */
  readonly message?: string
  /** Such as `{ 'retry-after': '2' }`. */
  readonly headers?: Readonly<Record<string, string>>
  /** In place of the error in the API's own form; a text is sent as it is, such as a proxy's HTML page. */
  readonly body?: string | JsonObject
}

/**
 * A reply that does not arrive whole, or not sound. After some of it: the connection is cut (`reset`), nothing more comes
 * (`idle`), the answer ends as if it were whole (`truncate`), a piece is no JSON (`garble`), or an error is told (`error`).
 */
export interface BreakFault {
  readonly fault: 'break'
  readonly how: 'reset' | 'idle' | 'truncate' | 'garble' | 'error'
  /** Events that come before; of a reply that is not streamed, more than 0 is its first half. Default 2; 0: not a byte. */
  readonly after?: number
  /** Default: a sentence. */
  readonly reply?: Reply | string
}

/** A reply that comes drop by drop. */
export interface DripFault {
  readonly fault: 'drip'
  readonly reply: Reply | string
  /** Bytes of a drop. Default 1. */
  readonly bytes?: number
  /** Time between two drops, in ms. Default 1. */
  readonly everyMs?: number
}
