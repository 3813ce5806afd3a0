import { HarnessError } from '#contracts/errors.js'
import { nameOf } from '#core/log/ref.js'
import type { LogRef } from '#core/log/ref.js'
import type { RecordCodec, RecordPlace } from './log-codec.js'

export function placeOfEvent(ref: LogRef, seq: number): RecordPlace {
  return { ref, part: 'event', key: seq }
}

export function placeOfDigest(ref: LogRef, lastSeq: number): RecordPlace {
  return { ref, part: 'digest', key: lastSeq }
}

export function placeOfPost(ref: LogRef, id: string): RecordPlace {
  return { ref, part: 'post', key: id }
}

/** The beginnings of encoded records: no JSON text has one of them. */
export const ENCRYPTED = 'aes1:'
export const COMPRESSED = 'deflate1:'
/** Begins what a column stores of an owner whose name is hidden. */
export const HIDDEN_OWNER = 'hmac1:'

/** Stores records as they are. */
export const CLEAR: RecordCodec = {
  foreignOwners: [],
  encode: (json) => json,
  decode: (stored, place) => {
    if (stored.startsWith(ENCRYPTED))
      throw unreadableRecord(place, 'is encrypted, and the log was opened without `cipher`')
    if (stored.startsWith(COMPRESSED))
      throw unreadableRecord(place, 'is compressed, and the log was opened without `cipher`')
    return stored
  },
  isCurrent: (stored) => !isEncoded(stored),
  ownerText: (resourceId) => resourceId,
}

/** True if a codec has encoded it; false for the JSON of a record. */
export function isEncoded(stored: string): boolean {
  return stored.startsWith(ENCRYPTED) || stored.startsWith(COMPRESSED)
}

export function unreadableRecord({ ref, part, key }: RecordPlace, problem: string, cause?: unknown): HarnessError {
  const record = part === 'digest' ? `its digest at event ${key}` : `${part} ${key}`
  const message = `The log of ${nameOf(ref)} cannot be read: ${record} ${problem}.`
  return new HarnessError('invalid_log', message, cause === undefined ? {} : { cause })
}
