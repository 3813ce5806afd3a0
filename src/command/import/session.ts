import type { ContentPart, TokenUsage } from '#contracts/entry.js'
import { isObject } from '#util/json.js'

/** A record of a session file. */
export type FileRecord = Readonly<Record<string, unknown>>

/** What a file says of a reply. */
export interface ReplyFacts {
  /** Its id at the provider: usage that several records repeat counts once. */
  readonly id?: string | undefined
  readonly at?: string | null
  readonly provider?: string | undefined
  readonly model?: string | undefined
  readonly usage?: TokenUsage | undefined
  /** US dollars; absent: unknown. */
  readonly costUsd?: number | undefined
  /** They are about the reply before: the file says them later. */
  readonly isLate?: boolean
}

export interface FoundCall {
  /** Null: the file gives none, and results follow the order of the calls. */
  readonly id: string | null
  readonly name: string
  /** JSON text of an object. */
  readonly arguments: string
  /** The provider executed it. */
  readonly hosted: boolean
}

export interface FoundResult {
  readonly id: string | null
  readonly content: string
  /** Images and files beside the text. */
  readonly media: readonly ContentPart[]
  readonly isError: boolean
  readonly at: string | null
}

/** What a session consists of, in the order of the file. */
export type SessionItem =
  | { readonly kind: 'said'; readonly content: readonly ContentPart[]; readonly at: string | null }
  | { readonly kind: 'reply'; readonly facts: ReplyFacts }
  | { readonly kind: 'text' | 'reasoning'; readonly text: string }
  | { readonly kind: 'call'; readonly call: FoundCall }
  | { readonly kind: 'result'; readonly result: FoundResult }

/**
 * What a file holds. `turns`: texts of a person; `texts`: those of the assistant; `sidechain`: records of subagents, what they hold is
 * counted in the others too.
 */
export type SessionCounts = Session['counts']

const FACTS = ['id', 'cwd', 'version', 'provider', 'model'] as const

/** What a reader has found in a file, and what it has left out. */
export class Session {
  readonly counts = { turns: 0, texts: 0, calls: 0, results: 0, reasoning: 0, compactions: 0, sidechain: 0 }
  readonly facts: { [Fact in (typeof FACTS)[number]]?: string } = {}
  /** Records of kinds that no reader knows: kind → how many. */
  readonly unknown = new Map<string, number>()
  /** The conversations: the session itself as `''`, and those of its subagents by their ids. */
  readonly threads = new Map<string, SessionItem[]>()
  #items: SessionItem[] = this.#thread('')

  /** What follows belongs to a subagent; `''`: to the session itself. */
  enter(agent: string): void {
    this.#items = this.#thread(agent)
  }

  /** A message of a person. A medium that is not in the file is a line of text, which nobody said. */
  said(content: readonly ContentPart[], at: string | null = null): void {
    const texts = content.filter((part) => part.type === 'text' && !LEFT_OUT.test(part.text))
    this.counts.turns += texts.length
    if (texts.length > 0 || content.some(({ type }) => type !== 'text')) this.#items.push({ kind: 'said', content, at })
  }

  /** What follows are parts of this reply. */
  reply(facts: ReplyFacts): void {
    this.#items.push({ kind: 'reply', facts })
  }

  text(text: unknown): void {
    if (typeof text !== 'string' || text.trim() === '') return
    this.counts.texts += 1
    this.#items.push({ kind: 'text', text })
  }

  /** Also if it is only there in an encrypted form. */
  reasoning(text: unknown): void {
    this.counts.reasoning += 1
    if (typeof text === 'string' && text.trim() !== '') this.#items.push({ kind: 'reasoning', text })
  }

  call({ id, name, input, hosted = false }: GivenCall): void {
    this.counts.calls += 1
    const call = { id: idOf(id), name: typeof name === 'string' ? name : '', arguments: argumentsOf(input), hosted }
    this.#items.push({ kind: 'call', call })
  }

  result({ id, content, media = [], isError = false, at = null }: GivenResult): void {
    this.counts.results += 1
    this.#items.push({ kind: 'result', result: { id: idOf(id), content, media, isError, at } })
  }

  compaction(): void {
    this.counts.compactions += 1
  }

  /** A record that nobody knows: it is left out, and said. */
  leave(kind: unknown): void {
    const name = typeof kind === 'string' && kind !== '' ? kind.slice(0, MOST_OF_A_KIND) : 'unnamed'
    this.unknown.set(name, (this.unknown.get(name) ?? 0) + 1)
  }

  /** Facts about the session, as far as they are strings: the first of each counts. */
  about(facts: { readonly [Fact in (typeof FACTS)[number]]?: unknown }): void {
    for (const name of FACTS) {
      const fact = facts[name]
      if (typeof fact === 'string' && fact !== '') this.facts[name] ??= fact
    }
  }

  #thread(agent: string): SessionItem[] {
    const items = this.threads.get(agent) ?? []
    this.threads.set(agent, items)
    return items
  }
}

interface GivenCall {
  readonly id: unknown
  readonly name: unknown
  readonly input: unknown
  readonly hosted?: boolean
}

interface GivenResult {
  readonly id: unknown
  readonly content: string
  readonly media?: readonly ContentPart[]
  readonly isError?: boolean
  readonly at?: string | null
}

/** The line in place of a picture or a file whose bytes are elsewhere. */
export function leftOut(type: unknown): string {
  return `[${String(type)}: not in the file]`
}

const LEFT_OUT = /^\[[\w-]+: not in the file\]$/

/** Names of kinds are shown in the terminal. */
const MOST_OF_A_KIND = 60

function idOf(id: unknown): string | null {
  return typeof id === 'string' && id !== '' ? id : null
}

/** Arguments as the JSON text of an object: of free text, its only member is `input`. */
export function argumentsOf(input: unknown): string {
  if (input === undefined || input === null || input === '') return '{}'
  if (isObject(input)) return JSON.stringify(input)
  if (typeof input !== 'string') return JSON.stringify({ input })
  try {
    if (isObject(JSON.parse(input))) return input
  } catch {
    // Free text.
  }
  return JSON.stringify({ input })
}
