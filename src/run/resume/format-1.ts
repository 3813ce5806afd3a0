import { contentOf, entryId } from '../../contracts/entry.js'
import type { ContentPart, TranscriptEntry } from '../../contracts/entry.js'
import { FORMAT_VERSION } from '../machine/events.js'
import type { DurableEvent, DurablePayloads } from '../machine/events.js'

/**
 * Turns the events of one log, in their order, into those of the current format: a log may begin in format 1 and continue in
 * this one. Changes nothing that it is given.
 */
export function currentFormat(): (stored: DurableEvent) => DurableEvent {
  let isOld = false
  // Of a run whose first request has not begun: that request had the prompt among its entries.
  let prompt: Prompt | null = null
  return (stored) => {
    if (stored.kind === 'run_started') isOld = (stored as { version?: number }).version === undefined
    if (!isOld) return stored
    if (stored.kind === 'run_started') prompt = promptIn(stored) ?? prompt
    if (stored.kind !== 'model_request_started' || prompt === null) return fromFormat1(stored)
    const first = prompt
    prompt = null
    return withoutPrompt(stored, first)
  }
}

/** The events of one log in the current format. */
export async function* inCurrentFormat(
  events: AsyncIterable<DurableEvent> | Iterable<DurableEvent>,
): AsyncGenerator<DurableEvent> {
  const current = currentFormat()
  for await (const event of events) yield current(event)
}

function fromFormat1(event: DurableEvent): DurableEvent {
  if (event.kind === 'run_started') return { ...event, version: FORMAT_VERSION }
  if (event.kind === 'model_message') {
    // Both are in the entry.
    const { text: _, toolCalls: __, ...rest } = event as typeof event & { text?: unknown; toolCalls?: unknown }
    return rest
  }
  if (event.kind !== 'run_completed') return event
  const { result, ...rest } = event as typeof event & { readonly result: Format1Result }
  const { stopReason, usage, pending } = result
  return { ...rest, stopReason, usage, pending: pending.map(({ callId }) => callId) }
}

type Prompt = string | readonly ContentPart[]

/** The prompt of a run that has not asked its model yet. */
function promptIn({ prompt, state }: DurableEvent & { kind: 'run_started' }): Prompt | null {
  if (state === undefined) return prompt
  const { phase, prompt: stored } = state as unknown as Format1State
  return phase.at === 'opening' ? (stored ?? null) : null
}

function withoutPrompt(event: DurableEvent & { kind: 'model_request_started' }, prompt: Prompt): DurableEvent {
  const [first, ...entries] = event.entries
  if (first?.role !== 'user') return event
  const content = contentOf(prompt)
  const [last, sent] = [content.at(-1), first.content.at(content.length - 1)]
  const begins = last?.type === 'text' && sent?.type === 'text' && sent.text.startsWith(`${last.text}\n\n`)
  const more = first.content.slice(content.length).map((part) => (part.type === 'text' ? part.text : ''))
  const added = [...(begins ? [sent.text.slice(last.text.length + 2)] : []), ...more].join('\n\n')
  return { ...event, entries, ...(added !== '' && { promptAddition: added }) }
}

type Format1Result = Pick<DurablePayloads['run_completed'], 'stopReason' | 'usage'> & {
  readonly pending: readonly { readonly callId: string }[]
}

interface Format1State {
  readonly startedAt: string
  /** Absent in a document that is none. */
  readonly prompt?: Prompt
  readonly phase: { readonly at: string }
  readonly transcript: readonly TranscriptEntry[]
  readonly firstEntry: number
}

/** A stored state of format 1 as one of the current format; any other document as it is. */
export function stateInCurrentFormat(document: Readonly<Record<string, unknown>>): Record<string, unknown> {
  if (document['version'] !== 1 || !Array.isArray(document['transcript'])) return document
  const { prompt, ...state } = document as unknown as Format1State
  const { transcript, firstEntry, startedAt: at } = state
  const hasAsked = transcript.length > firstEntry || prompt === undefined
  const entry = { id: entryId(transcript.length), at, role: 'user', content: contentOf(prompt ?? '') } as const
  return { ...state, version: FORMAT_VERSION, transcript: hasAsked ? transcript : [...transcript, entry] }
}
