import { isObject } from '#util/json.js'
import type { Dialect, ToolChunk, UiChunk, UiInputPart } from './chunk.js'

/** A message of a page: the form that `useChat` of the AI SDK has. */
export interface UiMessage {
  readonly id: string
  readonly role: 'user' | 'assistant'
  readonly metadata?: unknown
  readonly parts: readonly UiMessagePart[]
}

export type UiMessagePart =
  | { readonly type: 'step-start' }
  | { readonly type: 'text'; readonly text: string; readonly state?: 'streaming' | 'done' }
  | { readonly type: 'reasoning'; readonly id: string; readonly text: string; readonly state: 'streaming' | 'done' }
  | { readonly type: 'file'; readonly mediaType: string; readonly url: string; readonly filename?: string }
  | { readonly type: 'source-url'; readonly sourceId: string; readonly url: string; readonly title?: string }
  | { readonly type: 'steering-message'; readonly id: string; readonly parts: readonly UiInputPart[] }
  | { readonly type: `data-${string}`; readonly id?: string; readonly data: unknown }
  | UiToolPart

/** A call. `type` is `dynamic-tool`, with `toolName`, or `tool-<name>`. */
export interface UiToolPart {
  readonly type: 'dynamic-tool' | `tool-${string}`
  readonly toolName?: string
  readonly toolCallId: string
  readonly title?: string
  readonly state:
    | 'input-streaming'
    | 'input-available'
    | 'approval-requested'
    | 'approval-responded'
    | 'output-available'
    | 'output-error'
    | 'output-denied'
  readonly input?: unknown
  readonly rawInput?: unknown
  readonly output?: unknown
  /** The call has not ended. */
  readonly preliminary?: true
  readonly errorText?: string
  readonly approval?: {
    readonly id: string
    readonly descriptor?: unknown
    readonly isAutomatic?: true
    readonly approved?: boolean
    readonly reason?: string
  }
}

type ChunkOf<Type extends UiChunk['type']> = Extract<UiChunk, { readonly type: Type }>
type Mutable<Part> = { -readonly [Key in keyof Part]: Part[Key] }

/** Makes the message of a run out of its chunks, as the client of the AI SDK does. */
export class UiMessageFold {
  readonly #dialect: Dialect
  #id = ''
  #metadata: unknown
  #parts: UiMessagePart[] = []
  /** Places of open texts, by id. */
  readonly #open = new Map<string, number>()

  constructor(dialect: Dialect) {
    this.#dialect = dialect
  }

  /** Null before the first chunk. */
  get message(): UiMessage | null {
    if (this.#id === '') return null
    const metadata = this.#metadata === undefined ? {} : { metadata: this.#metadata }
    return { id: this.#id, ...metadata, role: 'assistant', parts: [...this.#parts] }
  }

  add(chunk: UiChunk): void {
    if ('data' in chunk) this.#addData(chunk)
    else (this.#handlers[chunk.type] as ((chunk: UiChunk) => void) | undefined)?.(chunk)
  }

  readonly #handlers: {
    readonly [Type in Exclude<UiChunk['type'], `data-${string}`>]?: (chunk: ChunkOf<Type>) => void
  } = {
    start: ({ messageId, messageMetadata }) => {
      this.#id = messageId
      this.#addMetadata(messageMetadata)
    },
    'message-metadata': ({ messageMetadata }) => this.#addMetadata(messageMetadata),
    'start-step': () => void this.#parts.push({ type: 'step-start' }),
    'reset-step': () => {
      this.#parts = this.#parts.slice(0, this.#stepStart())
      this.#open.clear()
    },
    'text-start': ({ id }) => this.#begin(id, { type: 'text', text: '', state: 'streaming' }),
    'text-delta': ({ id, delta }) => this.#extend(id, delta),
    'text-end': ({ id }) => this.#close(id),
    'reasoning-start': ({ id }) => this.#begin(id, { type: 'reasoning', id, text: '', state: 'streaming' }),
    'reasoning-delta': ({ id, delta }) => this.#extend(id, delta),
    'reasoning-end': ({ id }) => this.#close(id),
    'tool-input-start': (chunk) => this.#input(chunk, { state: 'input-streaming' }),
    'tool-input-available': (chunk) => this.#input(chunk, { state: 'input-available', input: chunk.input }),
    'tool-input-error': (chunk) => {
      const { input, errorText, dynamic } = chunk
      const isRaw = dynamic !== true && this.#dialect < 7
      this.#input(chunk, { state: 'output-error', ...(isRaw ? { rawInput: input } : { input }), errorText })
    },
    'tool-approval-request': ({ toolCallId, approvalId, approvalDescriptor, isAutomatic }) =>
      this.#change(toolCallId, {
        state: 'approval-requested',
        approval: {
          id: approvalId,
          ...(approvalDescriptor !== undefined && { descriptor: approvalDescriptor }),
          ...(isAutomatic !== undefined && { isAutomatic }),
        },
      }),
    'tool-approval-response': ({ approvalId, approved, reason }) => {
      const part = this.#parts.find((each): each is UiToolPart => isTool(each) && each.approval?.id === approvalId)
      if (part === undefined) return
      const approval = { ...part.approval, id: approvalId, approved, ...(reason !== undefined && { reason }) }
      this.#replace(part, { ...part, state: 'approval-responded', approval })
    },
    'tool-output-available': ({ toolCallId, output, preliminary }) =>
      this.#change(toolCallId, { state: 'output-available', output, ...(preliminary === true && { preliminary }) }),
    'tool-output-error': ({ toolCallId, errorText }) => this.#change(toolCallId, { state: 'output-error', errorText }),
    'tool-output-denied': ({ toolCallId }) => this.#change(toolCallId, { state: 'output-denied' }),
    file: ({ url, mediaType }) => void this.#parts.push({ type: 'file', mediaType, url }),
    'source-url': (chunk) => void this.#parts.push(chunk),
    'steering-message': ({ id, parts }) => void this.#parts.push({ type: 'steering-message', id, parts }),
  }

  #begin(id: string, part: UiMessagePart): void {
    this.#open.set(id, this.#parts.length)
    this.#parts.push(part)
  }

  #extend(id: string, delta: string): void {
    this.#edit(id, (part) => ({ ...part, text: part.text + delta }))
  }

  #close(id: string): void {
    this.#edit(id, (part) => ({ ...part, state: 'done' }))
    this.#open.delete(id)
  }

  #edit(id: string, change: (part: Extract<UiMessagePart, { readonly text: string }>) => UiMessagePart): void {
    const index = this.#open.get(id) ?? -1
    const part = this.#parts[index]
    if (part !== undefined && 'text' in part) this.#parts[index] = change(part)
  }

  #input(
    { toolCallId, toolName, title, dynamic }: ToolChunk,
    change: Partial<UiToolPart> & Pick<UiToolPart, 'state'>,
  ): void {
    const known = this.#find(toolCallId, this.#stepStart())
    if (known !== null)
      return this.#replace(known, changeToolPart(known, { ...change, ...(title !== undefined && { title }) }))
    const named = dynamic === true ? { type: 'dynamic-tool' as const, toolName } : { type: `tool-${toolName}` as const }
    this.#parts.push({ ...named, toolCallId, ...(title !== undefined && { title }), ...change })
  }

  /** Changes a call that the message has. */
  #change(toolCallId: string, change: Partial<UiToolPart>): void {
    const part = this.#find(toolCallId, this.#stepStart()) ?? this.#find(toolCallId, 0)
    if (part === null) return
    const isOutput = change.state === 'output-available' || change.state === 'output-error'
    this.#replace(part, isOutput ? changeToolPart(part, { input: part.input, ...change }) : { ...part, ...change })
  }

  #find(toolCallId: string, from: number): UiToolPart | null {
    const found = this.#parts.findLast((part, index) => index >= from && isTool(part) && part.toolCallId === toolCallId)
    return found !== undefined && isTool(found) ? found : null
  }

  #replace(part: UiMessagePart, by: UiMessagePart): void {
    this.#parts[this.#parts.indexOf(part)] = by
  }

  #addData({ type, id, data, transient }: ChunkOf<`data-${string}`>): void {
    if (transient === true) return
    const part: UiMessagePart = { type, ...(id !== undefined && { id }), data }
    const known = this.#parts.find((each) => id !== undefined && each.type === type && 'id' in each && each.id === id)
    if (known === undefined) this.#parts.push(part)
    else this.#replace(known, part)
  }

  #addMetadata(metadata: unknown): void {
    if (metadata !== undefined) this.#metadata = mergeMetadata(this.#metadata, metadata)
  }

  /** The place behind the last beginning of a step. */
  #stepStart(): number {
    return this.#parts.findLastIndex(({ type }) => type === 'step-start') + 1
  }
}

/** A call with another state: what belongs to its state alone is gone. */
function changeToolPart(part: UiToolPart, change: Partial<UiToolPart>): UiToolPart {
  const next: Mutable<UiToolPart> = { ...part }
  delete next.input
  delete next.rawInput
  delete next.output
  delete next.preliminary
  delete next.errorText
  return { ...next, ...change }
}

export function isTool(part: UiMessagePart): part is UiToolPart {
  return 'toolCallId' in part
}

function mergeMetadata(base: unknown, over: unknown): unknown {
  if (!isObject(base) || !isObject(over)) return over
  const sum: Record<string, unknown> = { ...base }
  for (const [name, value] of Object.entries(over)) sum[name] = mergeMetadata(sum[name], value)
  return sum
}
