import { contentOfEnvelope, shownContent } from '../shown-content.js'
import { isStretchEnd } from '../projection.js'
import type { AnyEventOf, AnyRunEvent, LinkedContent, Projection, ProjectionOptions } from '../projection.js'
import { errorSentence } from '../error-sentence.js'
import { TurnReader } from '../turn-reader.js'
import type { ReplyChange } from '../turn-reader.js'
import { FIXED } from './event.js'
import type {
  InputContent,
  OpenResponse,
  ResponseEvent,
  ResponsePayload,
  OutputText,
  ResponseItem,
  UrlCitation,
} from './event.js'
import { requestedResponse, responseId, responseTools, usageBetween } from './response.js'
import type { Citation, ContentPart } from '#contracts/entry.js'
import { endKind } from '#contracts/result.js'
import type { PendingItem } from '#contracts/result.js'
import type { RunUsage } from '#contracts/run-usage.js'
import { FINAL_RESULT } from '#core/state/output-format.js'
import { isClientCall } from '#session/tools/client-tools.js'
import type { JsonObject } from '#util/json.js'

export interface ResponsesOptions extends Omit<ProjectionOptions, 'diagnostics'> {
  /** Which stretch of the run the response is, from 1. Default: the one after `after`. */
  readonly stretch?: number | undefined
}

/** The projection of a response, with the response itself. */
export interface ResponsesProjection extends Projection<ResponseEvent> {
  /** The response as it is after the events so far; null if its stretch has not begun. */
  readonly response: OpenResponse | null
  /** The stretch has ended: later events change nothing. */
  readonly isOver: boolean
}

/**
 * The events of a stream of Open Responses, and the response: one stretch of a run, from its beginning to its pause or end. Child
 * runs, progress and diagnostics are left out.
 */
export function responsesProjection(options: ResponsesOptions = {}): ResponsesProjection {
  return new StretchResponse(options)
}

interface Ending extends Pick<OpenResponse, 'status' | 'incomplete_details' | 'error'> {
  readonly at: string | null
  readonly usage: RunUsage | null
}

/** The status of a response by how its run ended: a stop and a limit are no failures. */
const STATUS = {
  completed: 'completed',
  paused: 'incomplete',
  stopped: 'cancelled',
  limited: 'incomplete',
  failed: 'failed',
} as const

class StretchResponse implements ResponsesProjection {
  readonly #options: ResponsesOptions
  readonly #turn: TurnReader
  readonly #output = new Output((payload) => this.#emit(payload))
  #emitted: ResponseEvent[] = []
  #count = 0
  #runId = ''
  #metadata: JsonObject = {}
  #model = ''
  #answersByTool = false
  /** The stretch of the event that is read, and whether it is that of the response. */
  #stretch = 1
  #isBetween = true
  #isOpen = false
  #createdAt = ''
  #before: RunUsage | null = null
  #pending: PendingItem[] = []
  #ending: Ending | null = null

  constructor(options: ResponsesOptions) {
    this.#options = options
    const { deltas, reasoning = true } = options
    this.#turn = new TurnReader({ live: deltas !== 'settled', inputs: true, reasoning, outputText: true })
  }

  get isOver(): boolean {
    return this.#ending !== null
  }

  get response(): OpenResponse | null {
    return this.#isOpen ? this.#responseNow() : null
  }

  next(event: AnyRunEvent): readonly ResponseEvent[] {
    if (this.#runId === '') this.#runId = event.runId
    if (event.runId !== this.#runId || this.isOver) return []
    if (this.#isBetween) this.#begin(event)
    this.#emitAll(this.#turn.next(event))
    ;(this.#handlers[event.kind] as ((event: AnyRunEvent) => void) | undefined)?.(event)
    if (isStretchEnd(event)) this.#leave()
    return this.#take()
  }

  end(): readonly ResponseEvent[] {
    if (!this.#isOpen) return []
    const code = 'interrupted'
    this.#ending ??= {
      status: 'failed',
      incomplete_details: null,
      at: null,
      usage: null,
      error: { code, message: this.#errorText({ code, message: '' }) },
    }
    this.#emitAll(this.#turn.close())
    const { status } = this.#ending
    const type = status === 'completed' || status === 'failed' ? status : 'incomplete'
    this.#emit({ type: `response.${type}`, response: this.#responseNow() })
    return this.#take()
  }

  join(earlier: ResponseEvent, later: ResponseEvent): ResponseEvent | null {
    if (!('delta' in earlier) || !('delta' in later)) return null
    if (earlier.type !== later.type || earlier.item_id !== later.item_id) return null
    return { ...later, delta: earlier.delta + later.delta }
  }

  /** A stretch begins: with the event after a pause, or the first. */
  #begin(event: AnyRunEvent): void {
    this.#isBetween = false
    const { after = 0, stretch } = this.#options
    const isOwn = stretch === undefined ? event.seq > after : this.#stretch === stretch
    if (event.kind === 'run_started') this.#start(event)
    if (!isOwn) return
    this.#isOpen = true
    this.#createdAt = event.durable ? event.at : ''
    const response = this.#responseNow()
    this.#emit({ type: 'response.created', response })
    this.#emit({ type: 'response.in_progress', response })
  }

  #start({ metadata, model, rules }: AnyEventOf<'run_started'>): void {
    this.#answersByTool = rules.answersByTool
    this.#model = model
    if (Object.keys(this.#metadata).length === 0) this.#metadata = metadata
  }

  #leave(): void {
    if (this.#isOpen) return
    this.#isBetween = true
    this.#stretch += 1
  }

  readonly #handlers: { readonly [Kind in AnyRunEvent['kind']]?: (event: AnyEventOf<Kind>) => void } = {
    run_started: (event) => this.#start(event),
    model_request_started: (event) => this.#said(event),
    model_message: ({ entry, resolution, runId, seq }) => {
      const isAnswer = this.#answersByTool && resolution.kind === 'final' && resolution.output !== undefined
      if (!this.#isOpen || !isAnswer) return
      if (!entry.parts.some((part) => part.type === 'tool_call' && part.name === FINAL_RESULT)) return
      const id = `msg_${runId}.${seq}.answer`
      this.#output.text(id, JSON.stringify(resolution.output))
      this.#output.end(id)
    },
    tool_call_completed: (event) => this.#completed(event),
    approval_requested: ({ items }) => {
      const asked = new Set(items.map(({ callId }) => callId))
      this.#pending = [...this.#pending.filter(({ callId }) => !asked.has(callId)), ...items]
    },
    answer_received: ({ callId }) => {
      this.#pending = this.#pending.filter((item) => item.callId !== callId)
    },
    run_completed: ({ pending, usage, at }) => {
      this.#pending = this.#pending.filter(({ callId }) => pending.includes(callId))
      const waits = this.#pending.some((item) => !isClientCall(item))
      this.#ends({
        status: waits ? 'incomplete' : 'completed',
        incomplete_details: waits ? { reason: 'approval_required' } : null,
        error: null,
        at,
        usage,
      })
    },
    run_failed: (event) => {
      const { code, message, stopReason, usage } = event
      const status = STATUS[endKind(stopReason)]
      this.#pending = []
      this.#ends({
        status,
        incomplete_details: status === 'failed' ? null : { reason: stopReason },
        error: status === 'failed' ? { code, message: this.#errorText({ code, message }) } : null,
        at: event.durable ? event.at : null,
        usage,
      })
    },
  }

  #ends(ending: Ending): void {
    if (this.#isOpen) this.#ending = ending
    else this.#before = ending.usage
  }

  #emitAll(all: readonly ReplyChange[]): void {
    if (!this.#isOpen) return
    all.forEach((change, index) => {
      const next = all[index + 1]
      // A part that is withdrawn while it arrives ends as incomplete.
      const isGone = change.kind === 'ended' && next?.kind === 'withdrawn' && next.parts.includes(change.part)
      if (!isGone) this.#emitChange(change)
    })
  }

  #emitChange(change: ReplyChange): void {
    switch (change.kind) {
      case 'text':
        return this.#output.text(this.#messageId(change.part), change.text)
      case 'reasoning':
        return this.#output.reasoning(this.#reasoningId(change.part), change.text)
      case 'ended':
        return this.#output.end(change.of === 'text' ? this.#messageId(change.part) : this.#reasoningId(change.part))
      case 'input': {
        const { callId, toolName: name, text: delta } = change
        return this.#output.input(this.#callId(callId), { callId, name, delta })
      }
      case 'call': {
        const { callId, toolName: name } = change
        const id = this.#callId(callId)
        this.#output.input(id, { callId, name, delta: change.arguments.slice(this.#output.lengthOf(id)) })
        return this.#output.end(id)
      }
      case 'cited':
        return this.#output.cite(this.#messageId(change.part), change.citations)
      case 'hosted':
      case 'image':
        // The protocol has no item for them that clients would not take for a call of their own.
        return
      case 'cut_off':
        return this.#output.add({
          type: 'function_call_output',
          id: `fco_${this.#runId}.${change.callId}`,
          call_id: change.callId,
          output: change.text,
          status: 'completed',
        })
      case 'withdrawn': {
        const parts = change.parts.flatMap((part) => [this.#messageId(part), this.#reasoningId(part)])
        return this.#output.withdraw([...parts, ...change.callIds.map((callId) => this.#callId(callId))])
      }
    }
  }

  /** Messages of people that the run took while it was in progress. */
  #said({ entries, runId, seq }: AnyEventOf<'model_request_started'>): void {
    if (!this.#isOpen) return
    for (const entry of entries) {
      if (entry.role !== 'user' || entry.notice === true || entry.source !== undefined) continue
      const content = entry.content.map((part, index) => this.#contentOf(part, { runId, seq, index }))
      const id = `msg_${runId}.${entry.id}`
      this.#output.add({ type: 'message', id, status: 'completed', role: 'user', content })
    }
  }

  #completed({ callId, toolName, output, parts = [], runId, seq }: AnyEventOf<'tool_call_completed'>): void {
    if (!this.#isOpen || (this.#answersByTool && toolName === FINAL_RESULT)) return
    const text = contentOfEnvelope(output)
    const files = parts.map((part, index) => this.#contentOf(part, { runId, seq, index }))
    this.#output.add({
      type: 'function_call_output',
      id: `fco_${runId}.${seq}`,
      call_id: callId,
      output: files.length === 0 ? text : [{ type: 'input_text', text }, ...files],
      status: 'completed',
    })
  }

  #contentOf(part: ContentPart, place: Pick<LinkedContent, 'runId' | 'seq' | 'index'>): InputContent {
    if (part.type === 'text') return { type: 'input_text', text: part.text }
    const { mediaType = '', name, size, url } = shownContent(part, place, this.#options) ?? {}
    if (url === undefined) return { type: 'input_text', text: `[${mediaType}, ${size ?? 0} bytes]` }
    if (mediaType.startsWith('image/')) return { type: 'input_image', image_url: url, detail: 'auto' }
    return { type: 'input_file', file_url: url, ...(name !== undefined && { filename: name }) }
  }

  #responseNow(): OpenResponse {
    const { model = this.#model, previous_response_id, metadata, background } = requestedResponse(this.#metadata)
    const [ending, id] = [this.#ending, responseId(this.#runId, this.#stretch)]
    const earlier = this.#stretch > 1 ? responseId(this.#runId, this.#stretch - 1) : (previous_response_id ?? null)
    const asked = ending === null ? [] : this.#pending.filter((item) => !isClientCall(item))
    return {
      id,
      ...FIXED,
      model,
      created_at: unixSeconds(this.#createdAt) ?? 0,
      completed_at: ending === null ? null : unixSeconds(ending.at ?? ''),
      status: ending?.status ?? 'in_progress',
      incomplete_details: ending?.incomplete_details ?? null,
      previous_response_id: earlier,
      output: this.#output.items,
      error: ending?.error ?? null,
      tools: responseTools(this.#metadata),
      usage: ending?.usage ? usageBetween(this.#before, ending.usage) : null,
      background: background === true,
      metadata: { ...metadata, ...(asked.length > 0 && { pending: JSON.stringify(asked) }) },
    }
  }

  #messageId(part: string): string {
    return `msg_${this.#runId}.${part}`
  }

  #reasoningId(part: string): string {
    return `rs_${this.#runId}.${part}`
  }

  #callId(callId: string): string {
    return `fc_${this.#runId}.${callId}`
  }

  #emit(payload: ResponsePayload): void {
    this.#emitted.push({ ...payload, sequence_number: this.#count++ })
  }

  #take(): readonly ResponseEvent[] {
    const events = this.#emitted
    this.#emitted = []
    return events
  }

  #errorText(error: { readonly code: string; readonly message: string }): string {
    return (this.#options.errorText ?? errorSentence)(error)
  }
}

function unixSeconds(at: string): number | null {
  const time = Date.parse(at)
  return Number.isNaN(time) ? null : Math.floor(time / 1000)
}

/** An item of the output, and its place in the stream. */
interface Placed {
  readonly index: number
  item: ResponseItem
}

/** An item that is arriving. */
interface Arriving {
  readonly kind: 'text' | 'reasoning' | 'call'
  readonly placed: Placed
  text: string
  annotations?: readonly UrlCitation[]
}

/**
 * The items of one response: sent as they arrive, and together. An item that is withdrawn keeps its place in the stream, and is not
 * among the items of the response.
 */
class Output {
  readonly #emit: (event: ResponsePayload) => void
  readonly #arriving = new Map<string, Arriving>()
  #items: Placed[] = []
  #count = 0

  constructor(emit: (event: ResponsePayload) => void) {
    this.#emit = emit
  }

  get items(): readonly ResponseItem[] {
    return this.#items.map(({ item }) => item)
  }

  /** An item that arrives whole. */
  add(item: ResponseItem): void {
    const { index } = this.#place(item)
    this.#emit({ type: 'response.output_item.done', output_index: index, item })
  }

  /** More of the text of a message. */
  text(id: string, delta: string): void {
    const arriving = this.#arriving.get(id) ?? this.#beginText(id)
    arriving.text += delta
    const place = { ...itemPlace(arriving), content_index: 0 }
    this.#emit({ type: 'response.output_text.delta', ...place, delta, logprobs: [] })
  }

  /** Pages that a message cites; of one that is complete, they are in the whole response. */
  cite(id: string, citations: readonly Citation[]): void {
    const arriving = this.#arriving.get(id)
    const annotations = urlCitations(citations)
    if (arriving === undefined) {
      const placed = this.#items.find(({ item }) => item.id === id)
      if (placed?.item.type === 'message' && placed.item.role === 'assistant')
        placed.item = { ...placed.item, content: placed.item.content.map((part) => ({ ...part, annotations })) }
      return
    }
    arriving.annotations = annotations
    const place = { ...itemPlace(arriving), content_index: 0 }
    annotations.forEach((annotation, annotation_index) =>
      this.#emit({ type: 'response.output_text.annotation.added', ...place, annotation_index, annotation }),
    )
  }

  /** More reasoning. */
  reasoning(id: string, delta: string): void {
    const arriving = this.#arriving.get(id) ?? this.#beginReasoning(id)
    arriving.text += delta
    const place = { ...itemPlace(arriving), summary_index: 0 }
    this.#emit({ type: 'response.reasoning_summary_text.delta', ...place, delta })
  }

  /** More of the arguments of a call. */
  input(
    id: string,
    { callId, name, delta }: { readonly callId: string; readonly name: string; readonly delta: string },
  ): void {
    const arriving = this.#arriving.get(id) ?? this.#beginCall(id, callId, name)
    if (delta === '') return
    arriving.text += delta
    this.#emit({ type: 'response.function_call_arguments.delta', ...itemPlace(arriving), delta })
  }

  /** How much of an item has arrived, in characters. */
  lengthOf(id: string): number {
    return this.#arriving.get(id)?.text.length ?? 0
  }

  /** An item is complete. */
  end(id: string): void {
    const arriving = this.#arriving.get(id)
    if (arriving === undefined) return
    this.#arriving.delete(id)
    this.#finish(arriving, 'completed')
  }

  /** Items that do not count. */
  withdraw(ids: readonly string[]): void {
    const gone = new Set(ids)
    for (const id of gone) {
      const arriving = this.#arriving.get(id)
      this.#arriving.delete(id)
      if (arriving !== undefined) this.#finish(arriving, 'incomplete')
    }
    this.#items = this.#items.filter(({ item }) => !gone.has(item.id))
  }

  #beginText(id: string): Arriving {
    const arriving = this.#begin('text', { type: 'message', id, status: 'in_progress', role: 'assistant', content: [] })
    this.#emit({ type: 'response.content_part.added', ...itemPlace(arriving), content_index: 0, part: outputText('') })
    return arriving
  }

  #beginReasoning(id: string): Arriving {
    const arriving = this.#begin('reasoning', { type: 'reasoning', id, summary: [] })
    const part = { type: 'summary_text', text: '' } as const
    this.#emit({ type: 'response.reasoning_summary_part.added', ...itemPlace(arriving), summary_index: 0, part })
    return arriving
  }

  #beginCall(id: string, callId: string, name: string): Arriving {
    const item = { type: 'function_call', id, call_id: callId, name, arguments: '', status: 'in_progress' } as const
    return this.#begin('call', item)
  }

  #begin(kind: Arriving['kind'], item: ResponseItem): Arriving {
    const arriving: Arriving = { kind, placed: this.#place(item), text: '' }
    this.#arriving.set(item.id, arriving)
    return arriving
  }

  #place(item: ResponseItem): Placed {
    const placed: Placed = { index: this.#count++, item }
    this.#items.push(placed)
    this.#emit({ type: 'response.output_item.added', output_index: placed.index, item })
    return placed
  }

  #finish(arriving: Arriving, status: 'completed' | 'incomplete'): void {
    const { placed, text } = arriving
    const place = itemPlace(arriving)
    const { item } = placed
    if (item.type === 'message' && item.role === 'assistant') {
      const part = outputText(text, arriving.annotations)
      this.#emit({ type: 'response.output_text.done', ...place, content_index: 0, text, logprobs: [] })
      this.#emit({ type: 'response.content_part.done', ...place, content_index: 0, part })
      placed.item = { ...item, status, content: [part] }
    } else if (item.type === 'reasoning') {
      const part = { type: 'summary_text', text } as const
      this.#emit({ type: 'response.reasoning_summary_text.done', ...place, summary_index: 0, text })
      this.#emit({ type: 'response.reasoning_summary_part.done', ...place, summary_index: 0, part })
      placed.item = { ...item, summary: [part] }
    } else if (item.type === 'function_call') {
      this.#emit({ type: 'response.function_call_arguments.done', ...place, name: item.name, arguments: text })
      placed.item = { ...item, status, arguments: text }
    }
    this.#emit({ type: 'response.output_item.done', output_index: place.output_index, item: placed.item })
  }
}

function itemPlace({ placed }: Arriving): { readonly item_id: string; readonly output_index: number } {
  return { item_id: placed.item.id, output_index: placed.index }
}

function outputText(text: string, annotations: readonly UrlCitation[] = []): OutputText {
  return { type: 'output_text', text, annotations, logprobs: [] }
}

function urlCitations(citations: readonly Citation[]): readonly UrlCitation[] {
  return citations.flatMap(({ url, title = '', from, to }): readonly UrlCitation[] =>
    url === undefined ? [] : [{ type: 'url_citation', url, title, start_index: from, end_index: to }],
  )
}
