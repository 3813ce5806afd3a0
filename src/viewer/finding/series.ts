import { numberAt, objectAt } from '../reading/event-fields.js'
import type { EventPlace, Pause, RunNode, TurnNode } from '../reading/nodes.js'
import { lostCache } from '../reading/lost-cache.js'

/** The numbers of one turn, for a plot; null where they are not known. */
export interface TurnPoint extends EventPlace {
  readonly turn: number
  /** Input tokens that were read from no cache. */
  readonly fresh: number | null
  readonly cached: number | null
  readonly output: number | null
  /** US dollars of this turn, and of the run up to it. */
  readonly costUsd: number | null
  readonly costSum: number | null
  /** From the request to the reply, and of the calls that follow it until the last has ended, in ms. */
  readonly replyMs: number | null
  readonly toolMs: number
  /** The part of the input that came from a cache: 0 to 1. */
  readonly cacheRate: number | null
  /** Why the cache was lost here; null: it was not. */
  readonly lostCache: string | null
}

/**
 * The numbers of a run's turns, for plots.
 *
 * @example
 * seriesOf(run).map(({ fresh }) => fresh)
 */
export function seriesOf(run: RunNode): readonly TurnPoint[] {
  let sum: number | null = null
  return run.turns.map((turn, index) => {
    if (turn.costUsd !== null) sum = (sum ?? 0) + turn.costUsd
    const { tokens, runId, startedAt, repliedAt, costUsd } = turn
    const ended = turn.calls.flatMap(({ endedAt }) => endedAt ?? [])
    return {
      ...{ runId, seq: turn.seq, turn: turn.index, costUsd, costSum: sum },
      fresh: tokens === null ? null : Math.max(0, tokens.input - tokens.cached),
      cached: tokens?.cached ?? null,
      output: tokens?.output ?? null,
      replyMs: repliedAt === null ? null : repliedAt - startedAt,
      toolMs: repliedAt === null || ended.length === 0 ? 0 : Math.max(...ended) - repliedAt - waitMs(turn),
      cacheRate: tokens === null || tokens.input === 0 ? null : tokens.cached / tokens.input,
      lostCache: lostCache(run.turns[index - 1], turn),
    }
  })
}

/** How long people were waited for in a turn. */
function waitMs({ calls }: TurnNode): number {
  return Math.max(0, ...calls.map(({ waits }) => waits.reduce((sum, { from, to }) => sum + ((to ?? from) - from), 0)))
}

/** The numbers at the top of a run. */
export interface RunTotals {
  /** From the first to the last event, and without pauses, in ms. */
  readonly ms: number
  readonly workMs: number
  readonly turns: number
  readonly calls: number
  readonly failedCalls: number
  /** Of its child runs and theirs. */
  readonly childTurns: number
  readonly childCalls: number
  readonly input: number
  readonly cached: number
  readonly output: number
  readonly reasoning: number
  readonly costUsd: number | null
  /** The limits that the run has, and how much of each is used. */
  readonly limits: readonly LimitUse[]
}

export interface LimitUse {
  /** `modelRequests`, `toolCalls`, `inputTokens`, `outputTokens`, `timeMs`, `costUsd`. */
  readonly name: string
  readonly used: number
  readonly limit: number
}

/**
 * The totals of a run: as its last event gives them, else the sum of its turns so far.
 *
 * @example
 * totalsOf(run, Date.now()).costUsd
 */
export function totalsOf(run: RunNode, now: number = run.updatedAt): RunTotals {
  const usage = objectAt({ usage: run.usage }, 'usage')
  const sum = (field: (turn: TurnNode) => number): number => run.turns.reduce((all, turn) => all + field(turn), 0)
  const count = (name: string, known: number): number => numberAt(usage, name) ?? known
  const children = objectAt(usage, 'children')
  const costs = run.turns.flatMap(({ costUsd }) => costUsd ?? [])
  const end = run.state === 'running' ? Math.max(now, run.updatedAt) : run.updatedAt
  const totals = {
    ms: end - run.startedAt,
    workMs: end - run.startedAt - pausedMs(run.pauses, end),
    turns: run.turns.length,
    calls: run.calls.size,
    failedCalls: [...run.calls.values()].filter(({ state }) => state === 'failed').length,
    childTurns: numberAt(children, 'modelRequests') ?? 0,
    childCalls: numberAt(children, 'toolCalls') ?? 0,
    input: count(
      'inputTokens',
      sum(({ tokens }) => tokens?.input ?? 0),
    ),
    cached: count(
      'cacheReadTokens',
      sum(({ tokens }) => tokens?.cached ?? 0),
    ),
    output: count(
      'outputTokens',
      sum(({ tokens }) => tokens?.output ?? 0),
    ),
    reasoning: count(
      'reasoningTokens',
      sum(({ tokens }) => tokens?.reasoning ?? 0),
    ),
    costUsd: numberAt(usage, 'costUsd') ?? (costs.length === 0 ? null : costs.reduce((all, cost) => all + cost, 0)),
  }
  return { ...totals, limits: limitUses(run, totals) }
}

function limitUses({ limits }: RunNode, totals: Omit<RunTotals, 'limits'>): readonly LimitUse[] {
  const used: Readonly<Record<string, number | null>> = {
    modelRequests: totals.turns,
    toolCalls: totals.calls,
    inputTokens: totals.input,
    outputTokens: totals.output,
    timeMs: totals.workMs,
    costUsd: totals.costUsd,
  }
  return Object.entries(limits).flatMap(([name, limit]) =>
    limit === null ? [] : [{ name, limit, used: used[name] ?? 0 }],
  )
}

function pausedMs(pauses: readonly Pause[], end: number): number {
  return pauses.reduce((sum, { from, to }) => sum + Math.max(0, Math.min(to ?? end, end) - from), 0)
}
