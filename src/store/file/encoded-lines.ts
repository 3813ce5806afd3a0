import { parseEvent } from '#core/log/log.js'
import type { LogDigest, LogEvent } from '#core/log/log.js'
import type { LogRef } from '#core/log/ref.js'
import { isObject, jsonObjectIn, jsonOr } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import { fileNameOf } from './file-paths.js'
import { isEncoded, placeOfDigest, placeOfEvent, unreadableRecord } from '../codec/clear.js'
import type { RecordCodec } from '../codec/log-codec.js'
import type { StoreCodec } from '../codec/store-codec.js'

/** An encoded event as a line of a file: JSON, so that a torn line is known for one. */
interface SealedLine {
  readonly id: string
  readonly seq: number
  readonly sealed: string
}

/** The line of an event in a file, without its break. */
export function lineOf(codec: RecordCodec, ref: LogRef, event: LogEvent): string {
  return storedLine(ref, event.seq, codec.encode(JSON.stringify(event), placeOfEvent(ref, event.seq)))
}

function storedLine({ id }: LogRef, seq: number, stored: string): string {
  return !isEncoded(stored) ? stored : JSON.stringify({ id, seq, sealed: stored } satisfies SealedLine)
}

/** The event of a line; undefined if it has none. Throws `invalid_log` if the codec cannot read it. */
export function eventIn(codec: RecordCodec, ref: LogRef, line: string): LogEvent | undefined {
  const sealed = jsonOr<unknown>(line, undefined)
  if (!isSealed(sealed)) {
    const event = parseEvent(line)
    if (event !== undefined) codec.decode(line, placeOfEvent(ref, event.seq))
    return event
  }
  const place = placeOfEvent(logOf(ref, sealed), sealed.seq)
  const event = parseEvent(codec.decode(sealed.sealed, place))
  if (event?.seq === sealed.seq) return event
  throw unreadableRecord(place, 'is not the event that its line names')
}

/** The stored line in the form of the current codec. */
export function renewedLine(codec: StoreCodec, ref: LogRef, line: string): string {
  const value = jsonOr<unknown>(line, undefined)
  if (isSealed(value)) return storedLine(ref, value.seq, codec.renewed(value.sealed, placeOfEvent(ref, value.seq)))
  const seq = parseEvent(line)?.seq ?? 0
  return storedLine(ref, seq, codec.renewed(line, placeOfEvent(ref, seq)))
}

function isSealed(value: unknown): value is SealedLine {
  return (
    isObject(value) && typeof value['sealed'] === 'string' && typeof value['seq'] === 'number' && !('kind' in value)
  )
}

/** The log, if only its file is known whose name does not say all of its id. */
function logOf(ref: LogRef, { id }: SealedLine): LogRef {
  return id !== ref.id && fileNameOf(id) === ref.id ? { ...ref, id } : ref
}

/** The text of the file with the digest of a thread. */
export function digestText(codec: RecordCodec, { ref, lastSeq, digest }: FileDigest): string {
  const stored = codec.encode(JSON.stringify(digest), placeOfDigest(ref, lastSeq))
  return JSON.stringify(isEncoded(stored) ? { lastSeq, sealed: stored } : { lastSeq, digest })
}

interface FileDigest {
  readonly ref: LogRef
  readonly lastSeq: number
  readonly digest: LogDigest
}

/** The digest after the last event; null if the file has that of another event. */
export function fileDigest(
  codec: RecordCodec,
  { ref, lastSeq }: Omit<FileDigest, 'digest'>,
  text: string,
): JsonObject | null {
  const { lastSeq: stored, sealed, digest } = jsonObjectIn(text)
  if (stored !== lastSeq) return null
  const place = placeOfDigest(ref, lastSeq)
  if (typeof sealed !== 'string') {
    codec.decode('{}', place)
    return digest as JsonObject
  }
  return JSON.parse(codec.decode(sealed, place)) as JsonObject
}
