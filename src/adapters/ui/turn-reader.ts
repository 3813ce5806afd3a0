import type { AssistantEntry, Citation, HostedPart, ImagePart } from '#contracts/entry.js'
import { FINAL_RESULT } from '#core/state/output-format.js'
import { cutOff } from '#core/state/call-endings.js'
import type { AnyRunEvent } from './projection.js'
import { contentOfEnvelope } from './shown-content.js'

/** A change of what a reader has of a reply. Ids of parts are `<seq of the request>.t<n>` for text and `.r<n>` for reasoning. */
export type ReplyChange =
  | { readonly kind: 'text' | 'reasoning'; readonly part: string; readonly text: string; readonly isFirst: boolean }
  | { readonly kind: 'ended'; readonly of: 'text' | 'reasoning'; readonly part: string }
  /** Sources of passages of a text, which is complete. */
  | { readonly kind: 'cited'; readonly part: string; readonly citations: readonly Citation[] }
  /** What the provider executed within the reply, and images that it made. */
  | { readonly kind: 'hosted'; readonly hosted: HostedPart }
  | { readonly kind: 'image'; readonly image: ImagePart }
  /** A piece of the arguments of a call. */
  | {
      readonly kind: 'input'
      readonly callId: string
      readonly toolName: string
      readonly text: string
      readonly isFirst: boolean
    }
  /** A call of the complete reply, with its whole arguments. */
  | { readonly kind: 'call'; readonly callId: string; readonly toolName: string; readonly arguments: string }
  /** A call that had not ended when its run did, and what the model reads of it. */
  | CutOffCall
  /** What was sent of the reply so far does not count. */
  | { readonly kind: 'withdrawn'; readonly parts: readonly string[]; readonly callIds: readonly string[] }

export interface CutOffCall {
  readonly kind: 'cut_off'
  readonly callId: string
  readonly toolName: string
  readonly text: string
}

export interface TurnReaderOptions {
  /** Send text and reasoning as they arrive. */
  readonly live: boolean
  /** Send the arguments of calls as they arrive. */
  readonly inputs: boolean
  readonly reasoning: boolean
  /** Send text that is a structured answer. */
  readonly outputText: boolean
}

type Piece = TextPiece | CallPiece

interface TextPiece {
  readonly kind: 'text' | 'reasoning'
  readonly part: string
  text: string
  readonly citations?: Citation[]
}

interface CallPiece {
  readonly kind: 'call'
  readonly callId: string
  readonly toolName: string
  text: string
}

/**
 * The replies of one run for readers: each character once, whether it arrives in deltas, with the complete reply, or both. The
 * complete reply counts: deltas that are its beginning are completed, others are withdrawn.
 */
export class TurnReader {
  readonly #options: TurnReaderOptions
  /** Number of the event of the request; 0 before the first. */
  #turn = 0
  #isOpen = false
  #pieces: Piece[] = []
  /** The run has a structured answer: `final_result` is not a call, or the text of an answer is not text. */
  #answers: 'tool' | 'json' | null = null
  /** The calls without a result, in the order of the model. */
  readonly #calls = new Map<string, { readonly toolName: string; hasStarted: boolean }>()
  /** Names of calls whose first deltas have none. */
  readonly #unnamed = new Map<string, string>()

  constructor(options: TurnReaderOptions) {
    this.#options = options
  }

  /** Number of the event of the latest request; 0 before the first. */
  get turn(): number {
    return this.#turn
  }

  /** True between a request and its reply. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  /** What an event of the run itself changes. */
  next(event: AnyRunEvent): readonly ReplyChange[] {
    const { kind } = event
    if (kind === 'text_delta') return this.#delta('text', event.text)
    if (kind === 'reasoning_delta') return this.#delta('reasoning', event.text)
    if (kind === 'tool_input_delta') return this.#input(event)
    if (kind === 'deltas_withdrawn') return this.#withdraw()
    if (kind === 'model_message') {
      this.#isOpen = false
      return this.#complete(event.entry, event.resolution.kind)
    }
    if (kind === 'run_completed' || kind === 'run_failed') return this.#cutOffs(event)
    this.#note(event)
    if (kind === 'run_started') {
      const { answersByTool, answersByJson } = event.rules
      this.#answers = answersByTool ? 'tool' : answersByJson === true && !this.#options.outputText ? 'json' : null
    }
    if (kind !== 'run_started' && kind !== 'model_request_started') return []
    const lost = this.close()
    this.#turn = event.seq
    this.#isOpen = kind === 'model_request_started'
    return lost
  }

  /** The reply that is arriving will not be completed: what was sent of it does not count. */
  close(): readonly ReplyChange[] {
    this.#isOpen = false
    return this.#withdraw()
  }

  #note(event: AnyRunEvent): void {
    const { kind } = event
    const starts = (callId: string): void => {
      const call = this.#calls.get(callId)
      if (call !== undefined) call.hasStarted = true
    }
    if (kind === 'tool_call_started') starts(event.callId)
    if (kind === 'approval_requested')
      for (const { callId, kind: asked } of event.items) if (asked !== 'approval') starts(callId)
    if (kind === 'tool_call_completed') this.#calls.delete(event.callId)
  }

  /** The calls that a run ends without. An end that is not stored is none for those who read the log. */
  #cutOffs(event: Extract<AnyRunEvent, { kind: 'run_completed' | 'run_failed' }>): readonly CutOffCall[] {
    const ends = event.kind === 'run_completed' ? event.pending.length === 0 : event.durable
    if (!ends) return []
    return [...this.#calls].map(([callId, { toolName, hasStarted }]) => {
      const text = contentOfEnvelope(cutOff(hasStarted, '').output)
      return { kind: 'cut_off', callId, toolName, text }
    })
  }

  #delta(kind: 'text' | 'reasoning', text: string): readonly ReplyChange[] {
    const { live, reasoning } = this.#options
    if (!live || text === '' || (kind === 'reasoning' ? !reasoning : this.#answers === 'json')) return []
    const last = this.#pieces.at(-1)
    if (last?.kind === kind) {
      last.text += text
      return [{ kind, part: last.part, text, isFirst: false }]
    }
    const ended = this.#end()
    const part = this.#begin(kind, text)
    return [...ended, { kind, part, text, isFirst: true }]
  }

  #input({ callId, toolName, text }: Extract<AnyRunEvent, { kind: 'tool_input_delta' }>): readonly ReplyChange[] {
    if (!this.#options.live) return []
    const known = this.#pieces.find((piece) => piece.kind === 'call' && piece.callId === callId)
    if (known?.kind === 'call') {
      if (!this.#options.inputs || text === '') return []
      known.text += text
      return [{ kind: 'input', callId, toolName: known.toolName, text, isFirst: false }]
    }
    const held = (this.#unnamed.get(callId) ?? '') + text
    if (toolName === undefined) {
      this.#unnamed.set(callId, held)
      return []
    }
    this.#unnamed.delete(callId)
    if (this.#isAnswer(toolName)) return []
    const ended = this.#end()
    // Arguments that are not sent cannot differ from those of the reply.
    this.#pieces.push({ kind: 'call', callId, toolName, text: this.#options.inputs ? held : '' })
    return this.#options.inputs ? [...ended, { kind: 'input', callId, toolName, text: held, isFirst: true }] : ended
  }

  #withdraw(): readonly ReplyChange[] {
    const ended = this.#end()
    const pieces = this.#pieces
    this.#pieces = []
    this.#unnamed.clear()
    const parts = pieces.flatMap((piece) => (piece.kind === 'call' ? [] : [piece.part]))
    const callIds = this.#options.inputs ? pieces.flatMap((piece) => (piece.kind === 'call' ? [piece.callId] : [])) : []
    return parts.length + callIds.length === 0 ? ended : [...ended, { kind: 'withdrawn', parts, callIds }]
  }

  #complete(entry: AssistantEntry, resolution: string): readonly ReplyChange[] {
    const pieces = this.#piecesOf(entry, resolution)
    const withdrawn = isBeginning(this.#pieces, pieces) ? [] : this.#withdraw()
    const changes: ReplyChange[] = [...withdrawn]
    const isRetried = resolution === 'retry_user_message' || resolution === 'retry_tool_output'
    pieces.forEach((piece, index) => {
      const before = this.#pieces[index]
      if (piece.kind === 'call') {
        const { callId, toolName, text } = piece
        this.#calls.set(callId, { toolName, hasStarted: false })
        changes.push({ kind: 'call', callId, toolName, arguments: text })
        return
      }
      const { kind, part, text, citations = [] } = piece
      const isCited = citations.length > 0 && !isRetried
      const cited: readonly ReplyChange[] = isCited ? [{ kind: 'cited', part, citations }] : []
      // Parts before the last that was sent have ended.
      if (before !== undefined && index < this.#pieces.length - 1) return void changes.push(...cited)
      const rest = text.slice(before?.text.length ?? 0)
      if (rest !== '') changes.push({ kind, part, text: rest, isFirst: before === undefined })
      changes.push(...cited, { kind: 'ended', of: kind, part })
    })
    this.#pieces = []
    this.#unnamed.clear()
    if (!isRetried) return [...changes, ...executed(entry)]
    // The answer did not fit: what was sent of it does not count.
    const parts = pieces.flatMap((piece) => (piece.kind === 'call' ? [] : [piece.part]))
    return parts.length === 0 ? changes : [...changes, { kind: 'withdrawn', parts, callIds: [] }]
  }

  /** The visible pieces of a reply: neighbouring parts of one kind are one, opaque ones are not seen. */
  #piecesOf({ parts }: AssistantEntry, resolution: string): readonly Piece[] {
    const isAnswer = this.#answers === 'json' && (resolution === 'final' || resolution.startsWith('retry_'))
    const pieces: Piece[] = []
    for (const part of parts) {
      if (part.type === 'opaque' || part.type === 'hosted' || part.type === 'image') continue
      if (part.type === 'tool_call') {
        if (!this.#isAnswer(part.name))
          pieces.push({ kind: 'call', callId: part.callId, toolName: part.name, text: part.arguments })
        continue
      }
      const { type: kind, text } = part
      if (text === '' || (kind === 'reasoning' ? !this.#options.reasoning : isAnswer)) continue
      const last = pieces.at(-1)
      const piece = last?.kind === kind ? last : { kind, part: this.#partId(kind, pieces), text: '', citations: [] }
      if (piece !== last) pieces.push(piece)
      const { length } = piece.text
      for (const each of part.type === 'text' ? (part.annotations ?? []) : [])
        piece.citations?.push({ ...each, from: each.from + length, to: each.to + length })
      piece.text += text
    }
    return pieces
  }

  #begin(kind: 'text' | 'reasoning', text: string): string {
    const part = this.#partId(kind, this.#pieces)
    this.#pieces.push({ kind, part, text })
    return part
  }

  #partId(kind: 'text' | 'reasoning', pieces: readonly Piece[]): string {
    const before = pieces.filter((piece) => piece.kind === kind).length
    return `${this.#turn}.${kind === 'text' ? 't' : 'r'}${before}`
  }

  /** Ends the part that is open, if one is. */
  #end(): readonly ReplyChange[] {
    const last = this.#pieces.at(-1)
    return last === undefined || last.kind === 'call' ? [] : [{ kind: 'ended', of: last.kind, part: last.part }]
  }

  #isAnswer(toolName: string): boolean {
    return this.#answers === 'tool' && toolName === FINAL_RESULT
  }
}

/** True if `sent` is a beginning of the reply: its last piece may be incomplete, the others are whole. */
function isBeginning(sent: readonly Piece[], reply: readonly Piece[]): boolean {
  return sent.every((piece, index) => {
    const whole = reply[index]
    if (whole === undefined || whole.kind !== piece.kind) return false
    if (piece.kind === 'call')
      return whole.kind === 'call' && whole.callId === piece.callId && whole.text.startsWith(piece.text)
    return index === sent.length - 1 ? whole.text.startsWith(piece.text) : whole.text === piece.text
  })
}

/** What a provider executed within a reply, in its order. */
function executed({ parts }: AssistantEntry): readonly ReplyChange[] {
  return parts.flatMap(({ native: _, ...part }): readonly ReplyChange[] => {
    if (part.type === 'hosted') return [{ kind: 'hosted', hosted: part }]
    return part.type === 'image' ? [{ kind: 'image', image: part }] : []
  })
}
