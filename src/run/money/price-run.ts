import { HarnessError } from '#contracts/errors.js'
import { inDollars } from '#core/money-port.js'
import { costOfReply } from './hosted-cost.js'
import { priceOf } from './find-price.js'
import type { Prices } from './find-price.js'
import type { TokenUsage } from '#contracts/entry.js'
import type { DurableEvent, RunEvent } from '#core/state/events.js'

/** The cost of a recorded run on a model. */
export interface RunPrice {
  /** US dollars, exact to the micro-dollar, of the replies whose tokens are known. */
  readonly costUsd: number
  readonly modelRequests: number
  /** Replies without usage from the provider. */
  readonly unreported: number
}

/**
 * Prices a recorded run again, at the prices of `model` (`provider:model`): its tokens stay what they were, and so does what
 * came from a cache. Its children count too: reply by reply if their events are in `log` (a stream has them), otherwise by the
 * sums in their calls, which do not include one-hour cache writes. Rejects with `invalid_options` when no price is known.
 */
export async function priceRun(
  log: Iterable<RunEvent> | AsyncIterable<RunEvent>,
  model: string,
  { prices = {} }: { readonly prices?: Prices } = {},
): Promise<RunPrice> {
  const colon = model.indexOf(':')
  const provider = model.slice(0, Math.max(0, colon))
  const price = await priceOf({ provider, id: model.slice(colon + 1) }, prices)
  if (price === null)
    throw new HarnessError('invalid_options', `No price is known for \`${model}\`: give it in \`prices\`.`)
  const replies = repliesIn(await durableIn(log))
  const costs = replies.map(({ usage }) => costOfReply({ price, provider }, usage))
  return {
    costUsd: inDollars(costs.reduce<number>((sum, cost) => sum + (cost ?? 0), 0)),
    modelRequests: replies.reduce((sum, { count }) => sum + count, 0),
    unreported: costs.filter((cost) => cost === null).length,
  }
}

async function durableIn(log: Iterable<RunEvent> | AsyncIterable<RunEvent>): Promise<readonly DurableEvent[]> {
  const events: DurableEvent[] = []
  for await (const event of log) if (event.durable) events.push(event)
  return events
}

interface Replies {
  readonly usage: TokenUsage
  readonly count: number
}

function repliesIn(events: readonly DurableEvent[]): readonly Replies[] {
  const callsWithRuns = new Set(events.map((event) => idOf(event.parentRunId, event.parentToolCallId)))
  return events.flatMap((event) => {
    if (event.kind === 'model_message') return [{ usage: event.entry.usage, count: 1 }]
    if (!('childUsage' in event)) return []
    if (callsWithRuns.has(idOf(event.runId, event.callId))) return []
    const { modelRequests, children } = event.childUsage
    return [{ usage: event.childUsage, count: modelRequests + children.modelRequests }]
  })
}

function idOf(runId: string | null, callId: string | null): string {
  return JSON.stringify([runId, callId])
}
