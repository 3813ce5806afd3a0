import { messageOf } from '#contracts/errors.js'
import { inDollars } from '../../money-port.js'
import { isObject, readOnly } from '#util/json.js'
import type { RunContext } from '../run-context.js'
import { extensionContext } from '../run-context.js'
import type { RunSetup } from '../run-plan.js'
import type { ViewContext, ViewPolicy, ViewProposal } from '../../extension/view-policy.js'
import type { DurablePayloads } from '../../state/events.js'
import { requireRange, viewOf, wholeChanges } from '../../state/view.js'
import { settle } from '#util/abort.js'

/**
 * Asks the view policies in order, each about the view that the ones before it left. `refusals`: how often the provider has
 * refused the request since it is too long. Resolves with true if the view has changed.
 */
export async function changeView(
  context: RunContext,
  setup: RunSetup,
  refusals: number,
  isTooLarge = false,
): Promise<boolean> {
  let hasChanged = false
  for (const { extension, member } of context.extensions.views) {
    const change = await changeBy(context, extension, () =>
      member(viewContext(context, setup, { refusals, isTooLarge, policy: extension })),
    )
    if (change === null) continue
    await Promise.all([countAside(context, change), context.emit('view_changed', change)])
    hasChanged ||= change.changes.length > 0
  }
  return hasChanged
}

/** What a policy has asked of a model counts by an event of its own. */
async function countAside(
  context: RunContext,
  { usage, cost }: Pick<DurablePayloads['view_changed'], 'usage' | 'cost'>,
): Promise<void> {
  const costUsd = cost === null ? null : inDollars(cost)
  if (usage !== null) await context.emit('aside', { purpose: 'summarise', usage, costUsd })
}

/** A policy that fails is reported, and changes nothing. */
async function changeBy(
  context: RunContext,
  policy: string,
  ask: () => ReturnType<ViewPolicy>,
): Promise<DurablePayloads['view_changed'] | null> {
  try {
    const proposal = await untilAborted(context, async () => ask())
    if (proposal === null || proposal === undefined) return null
    checkProposal(proposal)
    const { tokensBefore = null, tokensAfter = null, usage = null, costUsd } = proposal
    const changes = wholeChanges(context.state, proposal.changes)
    const first = context.state.transcript[0]?.id
    if (changes.some(({ from, native }) => native !== undefined && from !== first))
      throw new RangeError('Expected a range with `native` to begin with the first entry.')
    return {
      changes,
      policy,
      tokensBefore,
      tokensAfter,
      usage,
      cost: inMicro(costUsd),
    }
  } catch (error) {
    context.signal.throwIfAborted()
    await context.hookFailed('view', messageOf(error), policy)
    return null
  }
}

/** In whole micro-dollars. */
function inMicro(costUsd: number | undefined): number | null {
  return costUsd === undefined ? null : Math.ceil(costUsd * 1_000_000)
}

function viewContext(
  context: RunContext,
  setup: RunSetup,
  { policy, ...refused }: Pick<ViewContext, 'refusals' | 'isTooLarge'> & { readonly policy: string },
): ViewContext {
  const { state } = context
  const { model, money, tools } = setup
  const { entries: view, generation } = viewOf(state)
  // The reply to the view as it is now, if there is one; that of an earlier run counts if this model has given it.
  const index = state.transcript.findLastIndex(({ role }) => role === 'assistant')
  const found = index < (state.view?.changedAt ?? 0) ? undefined : state.transcript[index]
  const reply = found?.role === 'assistant' ? found : null
  const isOurs = index >= state.firstEntry || (reply?.provider === model.provider && reply.model === model.id)
  return {
    ...extensionContext(context),
    view: readOnly(view),
    generation,
    // A reply from a cache has none.
    lastInputTokens: (isOurs && reply?.usage.inputTokens) || null,
    window: model.capabilities.contextTokens ?? setup.plan.money.knownWindow(model),
    hasTool: (name) => tools.has(name),
    promptId: state.transcript[state.firstEntry]?.id ?? '',
    ...refused,
    mostBytes: model.requestBytes ?? null,
    budget: money.spending?.budget ?? null,
    compact: compactionOf(setup),
    warn: (message) => context.emitLive('warning', { message }),
    get prepared() {
      return (state.view?.prepared ?? []).filter((text) => text.policy === policy)
    },
    prepare: async ({ from, to, shown, usage = null, costUsd }) => {
      requireRange(state, { from, to })
      const prepared = { policy, from, to, shown, usage, cost: inMicro(costUsd) }
      await Promise.all([countAside(context, prepared), context.emit('view_prepared', prepared)])
    },
  }
}

function checkProposal(proposal: ViewProposal): void {
  const { changes }: { changes: unknown } = proposal
  const isChange = (change: unknown): boolean =>
    isObject(change) &&
    typeof change['from'] === 'string' &&
    typeof change['to'] === 'string' &&
    isShown(change['shown']) &&
    isNative(change['native'])
  if (Array.isArray(changes) && changes.every(isChange)) return
  throw new TypeError('Expected a view policy to return null or `{ changes: [{ from, to, shown }] }`.')
}

function isNative(native: unknown): boolean {
  return native === undefined || (isObject(native) && typeof native['provider'] === 'string' && 'data' in native)
}

function isShown(shown: unknown): boolean {
  return typeof shown === 'string' || Array.isArray(shown)
}

/** Compaction by the provider of the model, reserved and charged like a request; null if its API has none. */
function compactionOf(setup: RunSetup): ViewContext['compact'] {
  const { model, constants, money } = setup
  if (model.compact === undefined) return null
  return async (entries, signal) => {
    const attempts = money.request(model)
    const { compaction } = await attempts.paid({ transcript: entries, constants, signal }, async (most) => {
      const limit = most === null ? {} : { maxOutputTokens: most }
      const made = await model.compact?.(entries, constants, { signal, attempt: attempts.attempt, ...limit })
      if (made === undefined) throw new TypeError(`The model \`${model.id}\` returned no compaction.`)
      return { compaction: made, entry: { usage: made.usage } }
    })
    const cost = await attempts.cost()
    return { ...compaction, costUsd: cost === null ? null : inDollars(cost) }
  }
}

/** The value of `work`. Rejects when the run is aborted; work that ignores its signal is left alone then. */
export async function untilAborted<T>(context: RunContext, work: () => Promise<T>): Promise<T | undefined> {
  context.signal.throwIfAborted()
  const { value } = await settle(work, { abort: context.abort, timeoutMs: undefined })
  context.signal.throwIfAborted()
  return value
}
