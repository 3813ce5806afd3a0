import type { TranscriptEntry, AssistantPart, ContentPart, TokenUsage } from '#contracts/entry.js'
import { HarnessError } from '#contracts/errors.js'
import type { RequestConstants } from '#core/model-session.js'
import { listenToAbort } from '#util/abort.js'
import { affordableOutput, costBound, costOf, withoutLongCaching } from './price.js'
import type { Price } from './price.js'
import type { Hold, Purse, Shortage } from './purse.js'
import { budgetOf } from './budget.js'
import type { AnsweredTurn, PaidReply, PricedRequest, RequestPayer, RunBudget } from '#core/money.js'
import { byteLength } from '#util/bytes.js'

/** Cap of a reply if its model has none, in tokens. */
const OUTPUT_CAP = 16_384
/** A reply that may not be so long is not asked for: it would be cut off. In tokens. */
const SHORTEST_CAP = 2048

export interface SpendingOptions {
  readonly price: Price
  /** The model may cache prompts for an hour without a setting. */
  readonly cachesLong: boolean
  /** Tokens of a reply if settings name none. */
  readonly modelCap: number | undefined
  /** At the price of the model that answered; null if its usage or its price is unknown. Default: at `price`. */
  readonly costOfTurn?: (turn: AnsweredTurn) => Promise<number | null>
  /** The error of a request that could exceed a limit. */
  readonly stop: (shortage: Shortage) => Error
}

/** Pays for the requests of one run with a limit. */
export class Spending implements RequestPayer {
  readonly purse: Purse
  readonly #options: SpendingOptions
  /** Length of the conversation by the last reply, in tokens. */
  #measured: { readonly constants: RequestConstants; readonly entries: number; readonly tokens: number } | null = null

  /** The amount that is reserved for the last request; null if nothing limits the purse. */
  #hold: Hold | null = null

  constructor(purse: Purse, options: SpendingOptions) {
    this.purse = purse
    this.#options = options
  }

  /** Rejects, before anything is asked, when the request could pass a limit. */
  async pay<Turn extends AnsweredTurn>(request: PricedRequest<Turn>): Promise<PaidReply<Turn>> {
    const { price, stop, costOfTurn } = this.#options
    const input = this.#inputBound(request)
    const highest = this.#highestPrice(price, request.constants)
    const { most, least } = this.#caps(request.constants)
    const amounts = { most: costBound(highest, input, most), least: costBound(highest, input, least) }
    const hold = await this.purse.hold(amounts, request.signal)
    if ('needed' in hold) throw stop(hold)
    if (request.isAside !== true) this.#hold = hold
    const cap = Math.min(most, affordableOutput(highest, input, hold.amount))
    const turn = await settledOnFailure(hold, request.signal, () => request.ask(cap))
    // A reply without usage, or of another model without a known price, is charged what was reserved.
    const known = costOfTurn === undefined ? costOf(price, turn.entry.usage) : costOfTurn(turn).catch(() => null)
    const cost = (await known) ?? hold.amount
    hold.settle(cost)
    if (request.isAside !== true) this.#measure(request, turn.entry.usage)
    return { turn, cost }
  }

  /** A budget that spends from the purse of this run. */
  get budget(): RunBudget {
    return budgetOf(this.purse)
  }

  /** The cost of the last request if its reply was cut off, in micro-dollars: what was reserved. Null if there was none. */
  get cutOff(): number | null {
    return this.#hold?.amount ?? null
  }

  /** Caching for an hour costs most: it is assumed only if it is requested. */
  #highestPrice(price: Price, { settings }: RequestConstants): Price {
    const isAsked = JSON.stringify(settings.providerOptions ?? {}).includes('"1h"')
    return this.#options.cachesLong || isAsked ? price : withoutLongCaching(price)
  }

  /** Tokens of a reply: as many as are allowed, and the fewest that are worth asking for. */
  #caps({ settings }: RequestConstants): { readonly most: number; readonly least: number } {
    const most = settings.maxOutputTokens ?? this.#options.modelCap ?? OUTPUT_CAP
    // Some models have a thinking budget, which a lower cap could undercut.
    const isFixed = settings.reasoningEffort !== undefined && settings.reasoningEffort !== 'none'
    return { most, least: isFixed ? most : Math.min(most, SHORTEST_CAP) }
  }

  #inputBound({ transcript, constants }: PricedRequest<unknown>): number {
    const known = this.#measured
    if (known?.constants !== constants) return constantsBound(constants) + entriesBound(transcript)
    return known.tokens + entriesBound(transcript.slice(known.entries))
  }

  #measure({ transcript, constants }: PricedRequest<unknown>, { inputTokens, outputTokens }: TokenUsage): void {
    const isKnown = inputTokens !== null && outputTokens !== null
    // The reply itself will be the next entry.
    this.#measured = isKnown
      ? { constants, entries: transcript.length + 1, tokens: inputTokens + outputTokens + MARKS }
      : null
  }
}

/** Tokens between a reply and the next message. */
const MARKS = 64

/** A request that the provider rejected costs nothing; one that broke off is charged its maximum cost. */
async function settledOnFailure<T>(hold: Hold, signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
  // A model that ignores its signal is abandoned: nobody waits for its reservation.
  const stopListening = listenToAbort(signal, () => hold.settle(hold.amount))
  try {
    return await ask()
  } catch (error) {
    const wasRefused =
      error instanceof HarnessError &&
      (error.code === 'context_overflow' || (error.status !== undefined && error.status >= 400))
    hold.settle(wasRefused ? 0 : hold.amount)
    throw error
  } finally {
    stopListening()
  }
}

/** The tokens that providers add to a conversation: descriptions of tools, marks of roles and ends. */
const PER_REQUEST = 1024
const PER_ENTRY = 32
/** More than any provider counts for one image; a longer file can be more, by its bytes. */
const PER_MEDIUM = 40_000

/** The most input tokens that a request can have: no token of text is shorter than a byte. */
function constantsBound({ instructions, tools, structuredOutput }: RequestConstants): number {
  const definitions = JSON.stringify([tools, structuredOutput])
  return PER_REQUEST + bytes(instructions) + bytes(definitions)
}

function entriesBound(entries: readonly TranscriptEntry[]): number {
  return entries.reduce((sum, entry) => sum + PER_ENTRY + entryBound(entry), 0)
}

function entryBound(entry: TranscriptEntry): number {
  switch (entry.role) {
    case 'user':
      return contentBound(entry.content) + (entry.native === undefined ? 0 : bytes(JSON.stringify(entry.native.data)))
    case 'assistant':
      return entry.parts.reduce((sum, part) => sum + partBound(part), 0)
    case 'tool':
      return bytes(entry.callId) + contentBound(entry.content)
  }
}

function contentBound(content: string | readonly ContentPart[]): number {
  if (typeof content === 'string') return bytes(content)
  return content.reduce((sum, part) => sum + (part.type === 'text' ? bytes(part.text) : mediumBound(part)), 0)
}

function mediumBound(part: Exclude<ContentPart, { readonly type: 'text' }>): number {
  return Math.max(PER_MEDIUM, 'data' in part ? part.data.length : 0)
}

function partBound(part: AssistantPart): number {
  const native = part.native === undefined ? 0 : bytes(JSON.stringify(part.native.data))
  const own = part.type === 'tool_call' ? bytes(part.name) + bytes(part.arguments) + bytes(part.callId) : 0
  return native + own + ('text' in part ? bytes(part.text) : 0)
}

function bytes(text: string): number {
  return byteLength(text)
}
