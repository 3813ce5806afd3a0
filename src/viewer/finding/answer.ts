import { isObject } from '#util/json.js'
import type { JsonValue } from '#util/json.js'
import type { Book } from '../reading/book.js'
import { memberOf, numberAt, textAt } from '../reading/event-fields.js'
import type { EventPlace } from '../reading/nodes.js'
import { search } from './search.js'

/** The answer of a run that is JSON, and not the text of its last reply. */
export interface StructuredAnswer extends EventPlace {
  readonly value: JsonValue
  /** How it was asked for. */
  readonly mode: string | null
  readonly evidence: readonly EvidenceLink[]
}

/** A quotation in an answer, and where it comes from. */
export interface EvidenceLink {
  /** Its place in the answer, such as `.lines[0].source`. */
  readonly path: string
  readonly quote: string
  /** The source as the answer names it: `invoices/7.txt, line 12`, `row 3 of orders.jsonl`, `call call_2`. */
  readonly source: string
  /** The event that has the quotation; null: it is not in the log. */
  readonly place: EventPlace | null
}

/**
 * The structured answer of a run; null if it has none.
 *
 * @example
 * structuredAnswer(book, 'run_1')?.evidence.map(({ place }) => place)
 */
export function structuredAnswer(book: Book, runId: string): StructuredAnswer | null {
  const turn = book.run(runId)?.turns.findLast(({ resolution }) => resolution === 'final')
  const seq = turn?.replySeq ?? null
  const event = seq === null ? null : book.event({ runId, seq })
  const resolution = memberOf(event, 'resolution')
  const value = memberOf(resolution, 'output') as JsonValue | undefined
  if (seq === null || value === undefined) return null
  return {
    runId,
    seq,
    value,
    mode: textAt(resolution, 'mode') || null,
    evidence: [...evidenceIn(book, runId, { value, path: '' })],
  }
}

function* evidenceIn(
  book: Book,
  runId: string,
  { value, path }: { readonly value: unknown; readonly path: string },
): Generator<EvidenceLink> {
  const source = sourceWords(value)
  const quote = textAt(value, 'quote')
  if (source !== null && quote !== '') {
    yield { path, quote, source, place: placeOfQuote(book, runId, { quote, callId: textAt(value, 'call_id') }) }
    return
  }
  if (Array.isArray(value))
    for (const [index, item] of value.entries())
      yield* evidenceIn(book, runId, { value: item, path: `${path}[${index}]` })
  else if (isObject(value))
    for (const [name, member] of Object.entries(value))
      yield* evidenceIn(book, runId, { value: member, path: `${path}.${name}` })
}

/** The source of what may be evidence; null: it is none. */
function sourceWords(value: unknown): string | null {
  const [file, callId, row, from] = [
    textAt(value, 'file'),
    textAt(value, 'call_id'),
    numberAt(value, 'row'),
    numberAt(value, 'from_line'),
  ]
  if (callId !== '') return `call ${callId}`
  if (file === '') return null
  if (row !== null) return `row ${row} of ${file}`
  if (from === null) return null
  const to = numberAt(value, 'to_line') ?? from
  return `${file}, ${to > from ? `lines ${from} to ${to}` : `line ${from}`}`
}

/** The result that has a quotation: that of the call that is named, else the first. */
function placeOfQuote(
  book: Book,
  runId: string,
  { quote, callId }: { readonly quote: string; readonly callId: string },
): EventPlace | null {
  const named = book.run(runId)?.calls.get(callId)?.endSeq
  if (named !== undefined && named !== null) return { runId, seq: named }
  // A tool may number the lines: one of them is enough.
  const longest = quote.split('\n').reduce((long, line) => (line.trim().length > long.length ? line.trim() : long), '')
  for (const text of new Set([quote, longest])) {
    if (text === '') continue
    for (const hit of search(book, { text, runIds: [runId], kinds: ['tool_call_completed'] }))
      if (hit !== null) return { runId, seq: hit.seq }
  }
  return null
}
