import { isObject, mapStrings, parseJson } from '#util/json.js'
import { atOnce } from '#util/wrapped.js'
import type { AssistantPart } from './entry.js'
import { HarnessError, ModelRetry } from './errors.js'

/** A filter of one reply, between the model and its readers. What `text` withholds of a part, `end` gives. */
export interface OutputFilter {
  text(piece: string, partId: string): string
  end(partId: string): string
}

/** Several filters as one: each reads what the one before lets pass. */
export function chained(filters: readonly OutputFilter[]): OutputFilter {
  const through = (text: string, filter: OutputFilter, partId: string): string =>
    text === '' ? '' : filter.text(text, partId)
  return {
    text: (piece, partId) => filters.reduce((text, filter) => through(text, filter, partId), piece),
    end: (partId) => filters.reduce((rest, filter) => through(rest, filter, partId) + filter.end(partId), ''),
  }
}

/** A filter that is opened when it is first asked. Whatever it throws but a block is its failure. */
export function openedWhenAsked(open: () => OutputFilter, failed: (cause: unknown) => Error): OutputFilter {
  let filter: OutputFilter | undefined
  const filtered = (ask: (opened: OutputFilter) => unknown): string => {
    try {
      const text = atOnce('it', ask((filter ??= atOnce('it', open()))))
      if (typeof text === 'string') return text
      throw new TypeError(`Expected a text, got ${typeof text}.`)
    } catch (cause) {
      throw isBlock(cause) ? cause : failed(cause)
    }
  }
  return {
    text: (piece, partId) => filtered((opened) => opened.text(piece, partId)),
    end: (partId) => filtered((opened) => opened.end(partId)),
  }
}

/** Withholds each part until its end. */
export function holding(): OutputFilter {
  const held = new Map<string, string>()
  return {
    text(piece, partId) {
      held.set(partId, (held.get(partId) ?? '') + piece)
      return ''
    },
    end: (partId) => held.get(partId) ?? '',
  }
}

/** True if a filter has blocked what it read, and did not fail. */
function isBlock(error: unknown): boolean {
  return error instanceof ModelRetry || (error instanceof HarnessError && error.code === 'guard_blocked')
}

/** A piece of a part of a reply. */
interface Piece {
  readonly text: string
  /** Of a call: known from its first piece on, or later. */
  readonly toolName?: string
}

/** A reply that arrives, as a filter lets it pass: the pieces of its parts, by the ids of these. */
export class ArrivingParts<Delta extends Piece> {
  readonly #filter: OutputFilter
  /** The last piece of each part that has not ended. */
  readonly #open = new Map<string, Delta>()

  constructor(filter: OutputFilter) {
    this.#filter = filter
  }

  push(delta: Delta, partId: string): readonly (readonly [string, Delta])[] {
    const toolName = delta.toolName ?? this.#open.get(partId)?.toolName
    const named = toolName === undefined ? delta : { ...delta, toolName }
    this.#open.set(partId, named)
    const text = this.#filter.text(delta.text, partId)
    return text === '' ? [] : [[partId, { ...named, text }]]
  }

  /** What was withheld of the parts so far: they are complete. */
  end(): readonly (readonly [string, Delta])[] {
    const rest = Array.from(this.#open, ([id, delta]) => [id, { ...delta, text: this.#filter.end(id) }] as const)
    this.#open.clear()
    return rest.filter(([, { text }]) => text !== '')
  }
}

/** The members of events and entries that are texts, and those that are texts at any depth. */
const TEXTS: ReadonlySet<string> = new Set([
  ...['text', 'arguments', 'content', 'message', 'reason', 'prompt', 'promptAddition', 'shown'],
])
const WHOLE: ReadonlySet<string> = new Set(['output', 'value', 'payload', 'update', 'native'])

/** What comes from models and tools, as their readers get it. `open` makes the filters of one reply. */
export class FilteredTexts {
  readonly #open: () => OutputFilter

  constructor(open: () => OutputFilter) {
    this.#open = open
  }

  /** A text by itself. */
  whole(text: string): string {
    return this.#decoded(wholePart(this.#open(), text, 'text'))
  }

  /** The parts of a reply. Neighbours of one kind are one text for whoever joins them, as they were when they arrived. */
  parts(parts: readonly AssistantPart[]): readonly AssistantPart[] {
    const filter = this.#open()
    const seen = ({ type }: AssistantPart): boolean => type !== 'opaque' && type !== 'hosted' && type !== 'image'
    let id = ''
    return parts.map((given, index) => {
      const part = given.native === undefined ? given : { ...given, native: this.#json(given.native, 'all') }
      if (part.type === 'opaque' || part.type === 'image') return part as AssistantPart
      if (part.type === 'hosted') return this.json(part) as AssistantPart
      if (part.type === 'tool_call')
        return { ...part, arguments: this.#decoded(wholePart(filter, part.arguments, part.callId)) } as AssistantPart
      if (parts.slice(0, index).findLast(seen)?.type !== part.type) id = `${part.type}.${index}`
      const text = filter.text(part.text, id)
      const isLast = parts.slice(index + 1).find(seen)?.type !== part.type
      return { ...part, text: isLast ? this.#decoded(text + filter.end(id)) : text } as AssistantPart
    })
  }

  /** JSON with its texts, by the names of their members: ids, names and kinds are unchanged. Nothing is left of a text that is blocked. */
  json<Value>(value: Value): Value {
    return this.#json(value, 'named') as Value
  }

  #json(value: unknown, texts: 'all' | 'named' | 'own'): unknown {
    if (typeof value === 'string') return texts === 'named' ? value : unlessBlocked(() => this.whole(value), '')
    if (Array.isArray(value)) return value.map((each) => this.#json(each, texts))
    if (!isObject(value)) return value
    const isReply = value['role'] === 'assistant' && Array.isArray(value['parts'])
    const members = Object.entries(value).map(([name, member]) => {
      if (isReply && name === 'parts') return [name, unlessBlocked(() => this.parts(member as AssistantPart[]), [])]
      // Digests alone.
      if (name === 'config') return [name, member]
      const ofMember = texts === 'all' || WHOLE.has(name) ? 'all' : TEXTS.has(name) ? 'own' : 'named'
      return [name, this.#json(member, ofMember)]
    })
    return Object.fromEntries(members) as unknown
  }

  /** A text that is JSON: an escape in a string must not hide a word. */
  #decoded(text: string): string {
    const parsed = /^\s*[[{]/.test(text) ? parseJson(text) : null
    if (parsed?.ok !== true) return text
    const shown = JSON.stringify(mapStrings(parsed.value, (each) => this.whole(each)))
    return shown === JSON.stringify(parsed.value) ? text : shown
  }
}

function wholePart(filter: OutputFilter, text: string, partId: string): string {
  return (text === '' ? '' : filter.text(text, partId)) + filter.end(partId)
}

function unlessBlocked<T>(work: () => T, otherwise: T): T {
  try {
    return work()
  } catch (error) {
    if (isBlock(error)) return otherwise
    throw error
  }
}
