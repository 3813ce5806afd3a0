// The form in which the file log and the databases keep events and digests: JSON without the members that the log's name and the
// table of defaults imply. `form` is the number of that table. Without it the JSON is the event itself, as earlier versions wrote it.
import type { LogDigest, LogEvent } from '../../run/log/log.js'
import type { LogRef } from '../../run/log/ref.js'
import type { DurableEvent } from '../../run/machine/events.js'
import { isObject, parseJson } from '../../util/json.js'
import { DIGEST, EVENTS } from './defaults.js'
import { NOT_SHORT } from './members.js'
import type { Fields, Members } from './members.js'

const FORM = 1
/** The form of an event that has a member `form` of its own. */
const WRAPPED = 0

interface StoredOptions {
  /** For a file, which may be copied, and read by scripts: what each event says of itself stays in it, its id for example. */
  readonly isFile?: boolean
}

/** The JSON that is stored of an event. */
export function storedText(ref: LogRef, event: LogEvent | DurableEvent, options: StoredOptions = {}): string {
  const { isFile = false } = options
  const whole = event as LogEvent & Fields
  if ('form' in whole) return JSON.stringify({ form: WRAPPED, seq: event.seq, event })
  if (whole[idIn(ref)] !== ref.id) return JSON.stringify(event)
  const shortened = membersFor(ref, event.kind).shorten(whole, whole)
  if (shortened === NOT_SHORT) return JSON.stringify(event)
  return inForm(isFile ? withSaid(shortened, whole) : shortened)
}

/** With the members that are texts, numbers or true, and whose run it is. Every stored event is durable. */
function withSaid(short: Fields, whole: Fields): Fields {
  const kept: Record<string, unknown> = {}
  for (const name of Object.keys(whole)) {
    const value = short[name] ?? whole[name]
    if (name in short || (name !== 'durable' && isSaid(name, value))) kept[name] = value
  }
  return kept
}

function isSaid(name: string, value: unknown): boolean {
  return (
    name === 'parentRunId' || typeof value === 'string' || value === true || (typeof value === 'number' && value !== 0)
  )
}

/** The event of a stored JSON text; undefined if it has none. */
export function eventOf(ref: LogRef, text: string): LogEvent | undefined {
  const parsed = parseJson(text)
  if (!parsed.ok || !isObject(parsed.value)) return undefined
  const stored: Fields = parsed.value
  if (typeof stored['seq'] !== 'number') return undefined
  const { form, kind } = stored
  if (form === undefined) return stored as unknown as LogEvent
  if (form === WRAPPED) return stored['event'] as LogEvent | undefined
  if (form !== FORM) return undefined
  const { form: _, ...short } = stored
  const id = short[idIn(ref)] ?? ref.id
  const named = ref.kind === 'run' ? { kind, runId: id } : { threadId: id }
  return membersFor(ref, kind).complete(short, named) as unknown as LogEvent
}

/** What a row knows of the digest in it. */
interface DigestRow {
  readonly runId: string
  readonly startedAt: string
  readonly updatedAt: string
  readonly lastSeq: number
}

/** The JSON that is stored of a digest. `row`: of the run; null for that of a thread. */
export function digestText(digest: LogDigest, row: DigestRow | null): string {
  const whole = digest as Fields
  if (row === null || 'form' in whole || !isOf(row, whole)) return JSON.stringify(digest)
  const short = DIGEST.shorten(whole, whole)
  return short === NOT_SHORT ? JSON.stringify(digest) : inForm(short)
}

/** The digest of a stored JSON text. */
export function digestOf(text: string, row: DigestRow): Fields {
  const stored = JSON.parse(text) as Fields
  if (stored['form'] !== FORM) return stored
  const { form: _, ...short } = stored
  return DIGEST.complete(short, { ...row })
}

function isOf({ runId, startedAt, updatedAt, lastSeq }: DigestRow, digest: Fields): boolean {
  const { runId: id, startedAt: start, updatedAt: update, lastSeq: last } = digest
  return id === runId && start === startedAt && update === updatedAt && last === lastSeq
}

function inForm(short: Fields): string {
  const text = JSON.stringify(short)
  return text === '{}' ? `{"form":${FORM}}` : `{"form":${FORM},${text.slice(1)}`
}

function idIn({ kind }: LogRef): 'runId' | 'threadId' {
  return kind === 'run' ? 'runId' : 'threadId'
}

function membersFor({ kind: log }: LogRef, kind: unknown): Members {
  const { byKind, other } = EVENTS[log]
  return byKind.get(kind) ?? other
}
