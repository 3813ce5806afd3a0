import { resultForModel, textOf } from '#contracts/entry.js'
import { isObject } from '#util/json.js'
import type { ContentPart, ContentSource, TranscriptEntry } from '#contracts/entry.js'
import type { DurableEvent } from '#core/state/events.js'

/** What a row of the index is a piece of. `fact`: something that was remembered. */
export type MemoryKind = 'fact' | 'message' | 'reply' | 'result'

/** A text of a log, before it is cut into rows. */
export interface MemoryText {
  /** Names it for the model and for `forget`: `<run id>.<entry id>`, or the id of a fact. */
  readonly handle: string
  readonly kind: MemoryKind
  /** When it was said: ISO 8601 in UTC. */
  readonly at: string
  readonly text: string
  /** The conversation, if it is not that of its log. */
  readonly threadId?: string
  /** The sources of its content. A reply has those of everything that its model had read. */
  readonly sources: readonly ContentSource[]
}

/** Results that repeat what is in the memory already. */
const OWN_TOOLS: ReadonlySet<string> = new Set(['remember', 'recall_memory', 'forget', 'recall'])
/** More sources of one kind become the kind itself. */
const MOST_NAMES = 8

type EntryStamp = Pick<TranscriptEntry, 'id' | 'at'>

/** Collects the texts of a run, event by event. */
export class RunReader {
  readonly #runId: string
  readonly #withResults: boolean
  #sources: readonly ContentSource[]

  /** `sources`: of everything that was read before. */
  constructor(runId: string, sources: readonly ContentSource[], withResults: boolean) {
    this.#runId = runId
    this.#sources = sources
    this.#withResults = withResults
  }

  /** Of everything that the conversation has read so far. */
  get sources(): readonly ContentSource[] {
    return this.#sources
  }

  /** The run continues a conversation that had read these. */
  readBefore(sources: readonly ContentSource[]): void {
    this.#sources = uniteSources(this.#sources, sources)
  }

  textsIn(event: DurableEvent): readonly MemoryText[] {
    if (event.kind === 'run_started') {
      const { history, prompt, at, state } = event
      const earlier = state?.['transcript']
      if (Array.isArray(earlier)) this.readBefore(earlier.flatMap(entrySources))
      const before = 'runId' in history ? [] : history.flatMap((entry) => this.#entry(entry))
      return prompt === null ? before : [...before, this.#text({ id: 'prompt', at }, 'message', plainText(prompt))]
    }
    if (event.kind === 'model_request_started') return event.entries.flatMap((entry) => this.#entry(entry))
    if (event.kind === 'model_message') return event.blocked === undefined ? this.#entry(event.entry) : []
    if (event.kind !== 'tool_call_completed') return []
    const { callId, toolName: name, output, parts = [], ok, at, source } = event
    const content = parts.length === 0 ? output : [{ type: 'text', text: output } as const, ...parts]
    const stamp = { id: callId, at, role: 'tool', callId, name, content, isError: !ok } as const
    return this.#entry({ ...stamp, ...(source !== undefined && { source }) })
  }

  #entry(entry: TranscriptEntry): readonly MemoryText[] {
    if (entry.role === 'assistant')
      return [{ ...this.#text(entry, 'reply', textOf(entry.parts)), sources: this.#sources }]
    const { source } = entry
    if (source !== undefined) this.#sources = uniteSources(this.#sources, [source])
    const sources = source === undefined ? [] : uniteSources([source])
    if (entry.role === 'tool') {
      if (!this.#withResults || entry.isError || OWN_TOOLS.has(entry.name)) return []
      const { callId: id, at } = entry
      return [{ ...this.#text({ id, at }, 'result', plainText(resultForModel(entry, 'flag'))), sources }]
    }
    // Without a source, it is the harness that speaks.
    if (entry.notice === true && source === undefined) return []
    return [{ ...this.#text(entry, source === undefined ? 'message' : 'result', plainText(entry.content)), sources }]
  }

  #text({ id, at }: EntryStamp, kind: MemoryKind, text: string): MemoryText {
    return { handle: `${this.#runId}.${id}`, kind, at, text, sources: [] }
  }
}

function plainText(content: string | readonly ContentPart[]): string {
  if (typeof content === 'string') return content
  return content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')
}

/** The source of an entry of a stored state. */
function entrySources(entry: unknown): readonly ContentSource[] {
  const source = isObject(entry) ? entry['source'] : undefined
  return isSource(source) ? [source] : []
}

export function isSource(value: unknown): value is ContentSource {
  return isObject(value) && typeof value['kind'] === 'string'
}

/** Each source once, with those that agents had read. A kind with many names is that kind without a name, which counts as any of them. */
export function uniteSources(...lists: readonly (readonly ContentSource[])[]): readonly ContentSource[] {
  const all = new Map<string, ContentSource>()
  for (const { sources = [], ...source } of lists.flat()) {
    for (const { kind, name, tool } of [source, ...sources]) {
      const one = { kind, ...(name !== undefined && { name }), ...(tool !== undefined && { tool }) }
      all.set(JSON.stringify(one), one)
    }
  }
  const known = [...all.values()]
  const isCrowded = (kind: string): boolean => known.filter((each) => each.kind === kind).length > MOST_NAMES
  const crowded = new Set(known.map(({ kind }) => kind).filter(isCrowded))
  return [...known.filter(({ kind }) => !crowded.has(kind)), ...[...crowded].map((kind) => ({ kind }))]
}
