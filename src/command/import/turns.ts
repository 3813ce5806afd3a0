import { addTokens, UNREPORTED_USAGE } from '#contracts/entry.js'
import type { AssistantPart, ContentPart, TokenUsage } from '#contracts/entry.js'
import type { FoundCall, FoundResult, ReplyFacts, SessionItem } from './session.js'

/** A call in its place, with its result if the file has one. */
export interface TurnCall {
  /** Unique in the session. */
  readonly callId: string
  readonly name: string
  readonly arguments: string
  readonly hosted: boolean
  result: FoundResult | null
}

/** A reply of the model with its calls, and what people said before it. */
export interface SessionTurn {
  readonly said: readonly SaidMessage[]
  /** Text, reasoning and calls, in the order of the file. */
  readonly parts: (AssistantPart | TurnCall)[]
  at: string | null
  provider: string | undefined
  model: string | undefined
  usage: TokenUsage
  costUsd: number | undefined
}

export interface SaidMessage {
  readonly content: readonly ContentPart[]
  readonly at: string | null
}

/** A conversation as turns. */
export interface SessionTurns {
  readonly turns: readonly SessionTurn[]
  /** What people said after the last reply. */
  readonly unanswered: readonly SaidMessage[]
  /** Results of calls that the file does not have. */
  readonly strayResults: number
  readonly openCalls: number
}

/**
 * Puts what a reader has found into turns: pieces of a reply that follow each other are one reply, a result belongs to its call
 * wherever it is, by id, or in their order if the calls have none.
 */
export function turnsOf(items: readonly SessionItem[]): SessionTurns {
  const turns = new TurnList()
  for (const item of items) turns.add(item)
  return turns.end()
}

class TurnList {
  readonly #turns: SessionTurn[] = []
  #said: SaidMessage[] = []
  /** The turn that parts join; null: the next part begins one. */
  #current: SessionTurn | null = null
  #facts: ReplyFacts = {}
  /** Of replies whose usage is counted. */
  readonly #counted = new Set<string>()
  readonly #open: TurnCall[] = []
  /** Those of the file. */
  readonly #ids = new Map<TurnCall, string | null>()
  readonly #used = new Set<string>()
  #strayResults = 0

  add(item: SessionItem): void {
    switch (item.kind) {
      case 'said':
        this.#current = null
        this.#said.push(item)
        return
      case 'reply':
        this.#facts = item.facts
        return this.#count(this.#current ?? undefined)
      case 'text':
      case 'reasoning':
        this.#turn().parts.push({ type: item.kind, text: item.text })
        return
      case 'call':
        return this.#call(item.call)
      case 'result':
        return this.#result(item.result)
    }
  }

  end(): SessionTurns {
    return {
      turns: this.#turns,
      unanswered: this.#said,
      strayResults: this.#strayResults,
      openCalls: this.#open.length,
    }
  }

  #turn(): SessionTurn {
    if (this.#current !== null) return this.#current
    const { at = null, provider, model } = this.#facts
    const turn = { said: this.#said, parts: [], at, provider, model, usage: UNREPORTED_USAGE, costUsd: undefined }
    this.#said = []
    this.#current = turn
    this.#turns.push(turn)
    this.#count(turn)
    return turn
  }

  /** Adds usage to the turn, or to the last one: some files say it later. The same reply counts once. */
  #count(turn: SessionTurn | undefined): void {
    const { id, usage, costUsd, provider, model, isLate = false } = this.#facts
    const target = turn ?? (isLate ? this.#turns.at(-1) : undefined)
    if (target === undefined) return
    target.provider ??= provider
    target.model ??= model
    const isCounted = id !== undefined && this.#counted.has(id)
    if (id !== undefined) this.#counted.add(id)
    if (!isCounted && usage !== undefined) target.usage = addTokens(target.usage, usage)
    if (!isCounted && costUsd !== undefined) target.costUsd = (target.costUsd ?? 0) + costUsd
    // What is counted is not counted again for the turn that follows.
    this.#facts = { ...this.#facts, usage: undefined, costUsd: undefined }
  }

  #call({ id, name, arguments: text, hosted }: FoundCall): void {
    const callId = this.#unique(id ?? `call_${this.#used.size + 1}`)
    const call: TurnCall = { callId, name: toolName(name), arguments: text, hosted, result: null }
    this.#turn().parts.push(call)
    this.#open.push(call)
    this.#ids.set(call, id)
  }

  #result(result: FoundResult): void {
    const byId = this.#open.findLastIndex((call) => result.id !== null && this.#ids.get(call) === result.id)
    const index = byId === -1 ? this.#open.findIndex((call) => this.#ids.get(call) === null) : byId
    const call = this.#open[index]
    if (call === undefined) this.#strayResults += 1
    else {
      call.result = result
      this.#open.splice(index, 1)
      // What follows is the next reply; a result of the provider is within its reply, a late one belongs to an earlier reply.
      if (!call.hosted && this.#current?.parts.includes(call) === true) this.#current = null
    }
  }

  #unique(id: string): string {
    let unique = id
    for (let count = 2; this.#used.has(unique); count += 1) unique = `${id}_${count}`
    this.#used.add(unique)
    return unique
  }
}

/** A name that each provider takes. */
function toolName(name: string): string {
  return name.replace(/[^\w-]+/g, '_').slice(0, LONGEST_NAME) || 'unnamed'
}

const LONGEST_NAME = 64
