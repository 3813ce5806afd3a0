import type { TranscriptEntry, AssistantPart, ContentPart } from '#contracts/entry.js'
import type { Candidate } from '#contracts/attempt.js'
import type { RequestConstants } from '#core/model-session.js'
import { hostedBound } from './hosted-cost.js'
import { affordableOutput, costBound, withoutLongCaching } from './token-cost.js'
import type { Price } from './token-cost.js'
import type { ReservedMoney, Shortage } from './reserved-money.js'
import { budgetOf } from './budget.js'
import type { AnsweredTurn, PricedRequest, RunBudget } from '#core/money-port.js'
import { byteLength } from '#util/bytes.js'

/** Cap of a reply if its model has none, in tokens. */
const OUTPUT_CAP = 16_384
/** A reply that may not be so long is not asked for: it would be cut off. In tokens. */
const SHORTEST_CAP = 2048

/** Money that is reserved for an attempt at a request. */
export interface Reservation {
  /** Tokens of the reply that it pays for; null: as many as the settings allow. */
  readonly maxOutputTokens: number | null
  /** Counts the cost of the reply instead, and gives it; of null, what was reserved. Null: it is unknown. */
  readonly settle: (answered: AnsweredTurn | null) => Promise<number | null>
}

/** A model that may be asked, as far as its price goes. */
export interface PricedCandidate extends Candidate {
  readonly price: Price
  /** It may cache prompts for an hour without a setting. */
  readonly cachesLong: boolean
  /** Tokens of a reply if settings name none. */
  readonly modelCap: number | undefined
}

export interface SpendingOptions {
  /** Those that may answer: the model itself, or those that it is made of. */
  readonly candidates: readonly PricedCandidate[]
  /** One of them, or another one that is asked. Rejects if its price is unknown. */
  readonly find: (candidate: Candidate) => Promise<PricedCandidate>
  /** At the price of the model that answered; null if its usage or its price is unknown. */
  readonly costOfTurn: (turn: AnsweredTurn) => Promise<number | null>
  /** The error of a request that could exceed a limit. */
  readonly stop: (shortage: Shortage) => Error
}

/** Pays for the requests of one run with a limit. */
export class Spending {
  readonly money: ReservedMoney
  readonly #options: SpendingOptions
  /** Length of the conversation by the last reply, in the tokens of the model that gave it. */
  #measured: (Measured & { readonly constants: RequestConstants }) | null = null

  constructor(money: ReservedMoney, options: SpendingOptions) {
    this.money = money
    this.#options = options
  }

  /**
   * Reserves what an attempt of a model may cost; null: of the dearest that may answer. Rejects when it could pass a limit. `waits`
   * false: it does not wait for what others have reserved. Default true.
   */
  async reserve(request: PricedRequest, candidate: Candidate | null, waits = true): Promise<Reservation> {
    const { candidates, find, costOfTurn, stop } = this.#options
    const asked = candidate === null ? candidates : [await find(candidate)]
    const bounds = asked.map((each) => this.#boundsOf(each, request))
    const [most, least] = [Math.max(...bounds.map((each) => each.most)), Math.max(...bounds.map((each) => each.least))]
    const hold = await this.money.hold({ most, least, waits }, request.signal)
    if ('needed' in hold) throw stop(hold)
    return {
      maxOutputTokens: Math.min(...bounds.map(({ tokensFor }) => tokensFor(hold.amount))),
      settle: async (answered) => {
        // A reply without usage, or of another model without a known price, is charged what was reserved.
        const known = answered === null ? null : await costOfTurn(answered).catch(() => null)
        const cost = known ?? hold.amount
        hold.settle(cost)
        return cost
      },
    }
  }

  /** What a request to a model costs at most, with the longest reply and with the shortest that is worth asking for. */
  #boundsOf(candidate: PricedCandidate, request: PricedRequest): Bounds {
    const { settings } = request.constants
    const { cachesLong, modelCap = OUTPUT_CAP } = candidate
    // Caching for an hour costs most: it is assumed only if it is requested.
    const isAsked = cachesLong || JSON.stringify(settings.providerOptions ?? {}).includes('"1h"')
    const price = isAsked ? candidate.price : withoutLongCaching(candidate.price)
    const hosted = hostedBound(request.constants.tools, candidate)
    const input = this.#inputBound(candidate, request) + hosted.tokens
    const most = settings.maxOutputTokens ?? modelCap
    // Some models have a thinking budget, which a lower cap could undercut.
    const isFixed = settings.reasoningEffort !== undefined && settings.reasoningEffort !== 'none'
    const least = isFixed ? most : Math.min(most, SHORTEST_CAP)
    return {
      most: costBound(price, input, most) + hosted.cost,
      least: costBound(price, input, least) + hosted.cost,
      tokensFor: (amount) => Math.min(most, affordableOutput(price, input, amount - hosted.cost)),
    }
  }

  /** A budget that spends from the money of this run. */
  get budget(): RunBudget {
    return budgetOf(this.money)
  }

  #inputBound({ provider, model }: Candidate, { transcript, constants }: PricedRequest): number {
    const known = this.#measured
    const isSame = known?.constants === constants && known.provider === provider && known.model === model
    // A reply that was blocked is not in the conversation.
    if (!isSame || (transcript.length >= known.entries && transcript[known.entries - 1]?.role !== 'assistant'))
      return constantsBound(constants) + entriesBound(transcript)
    return known.tokens + entriesBound(transcript.slice(known.entries))
  }

  /** Learns from the reply how long the conversation is. */
  measure({ transcript, constants }: PricedRequest, { provider = '', model = '', usage }: AnsweredTurn['entry']): void {
    const { inputTokens, outputTokens } = usage
    const isKnown = inputTokens !== null && outputTokens !== null
    // The reply itself will be the next entry.
    const [entries, tokens] = [transcript.length + 1, Number(inputTokens) + Number(outputTokens) + MARKS]
    this.#measured = isKnown ? { provider, model, constants, entries, tokens } : null
  }
}

interface Measured extends Candidate {
  readonly entries: number
  readonly tokens: number
}

/** In micro-dollars. */
interface Bounds {
  readonly most: number
  readonly least: number
  /** Tokens of a reply that an amount pays for. */
  readonly tokensFor: (amount: number) => number
}

/** Tokens between a reply and the next message. */
const MARKS = 64

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
  if (part.type === 'hosted' || part.type === 'image' || 'annotations' in part)
    return native + bytes(JSON.stringify({ ...part, native: null }))
  return native + own + ('text' in part ? bytes(part.text) : 0)
}

function bytes(text: string): number {
  return byteLength(text)
}
