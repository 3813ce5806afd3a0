import { HarnessError } from '#contracts/errors.js'
import { NO_USAGE } from '#contracts/run-usage.js'
import { plainJsonText } from '#util/plain-json.js'
import type { ToolContext, ToolSpec } from '#core/tools/tool-spec.js'
import { outcomeOf } from '#core/tools/tool-result.js'
import type { JsonObject } from '#util/json.js'
import type { GoOnOpening } from '#core/loop/run-plan.js'
import { otherRunsOfFork } from '../children/background-runs.js'
import type { DurableEvent } from '#core/state/events.js'
import type { InputMessage } from '#core/stream/input.js'
import { inline } from '../resume/find-history.js'
import { applyStored, opened } from '../resume/read-log.js'
import type { ResolveHistory } from '../resume/read-log.js'
import { conversationOf } from '#core/state/closing.js'
import type { Conversation } from '#core/state/history.js'
import { mergedLabels } from '#core/state/labels.js'
import type { Labels } from '#core/state/labels.js'
import type { RunState } from '#core/state/state.js'
import { hasOtherRuns } from '#core/loop/decide.js'
import { RecordedCalls } from './recorded-calls.js'

/**
 * The state of a recorded run after its reply number `afterTurn`, with the results of the calls that the reply made, also
 * if the run paused before it had them. Throws `invalid_options` if it had no such turn.
 */
async function stateAfterTurn(
  events: readonly DurableEvent[],
  afterTurn: number,
  resolve: ResolveHistory,
): Promise<RunState> {
  const [first, ...rest] = events
  if (first === undefined) throw new HarnessError('invalid_log', 'The log has no events.')
  const { state } = await opened(first, resolve)
  let turns = state.usage.modelRequests + (state.usage.scriptSteps ?? 0)
  for (const event of rest) {
    const isEnd = event === rest.at(-1) && (event.kind === 'run_completed' || event.kind === 'run_failed')
    if (turns >= afterTurn && (isEnd || event.kind === 'model_request_started')) break
    applyStored(state, event)
    if (event.kind === 'model_message') turns += 1
  }
  if (turns === afterTurn) return state
  throw new HarnessError(
    'invalid_options',
    `Expected \`afterTurn\` to be a turn of the run, from 0 to ${turns}, got \`${afterTurn}\`.`,
  )
}

/** The point of a recorded run at which a new run begins. */
export interface ForkPoint {
  /** Number of the model's reply after which the fork begins, counted from 1 over the whole run; 0: before the first. */
  readonly afterTurn: number
  /** The next prompt. Default: none, the run continues as it was; required if it had its answer. */
  readonly prompt?: InputMessage | undefined
}

interface ForkedRun {
  readonly afterTurn: number
  readonly prompt: InputMessage | null
  readonly runId: string
  readonly labels: Labels
  readonly resolve: ResolveHistory
}

/** The opening of a run that continues a recorded one from one of its turns. */
export function forkOpening(
  recorded: Promise<readonly DurableEvent[]>,
  { afterTurn, prompt, runId, labels, resolve }: ForkedRun,
): { readonly opening: GoOnOpening; readonly calls: () => RecordedCalls } {
  const state = recorded.then((events) => stateAfterTurn(events, afterTurn, resolve))
  // Awaited when the run has begun; without this a bad log would also be an unhandled rejection.
  state.catch(() => undefined)
  const opening: GoOnOpening = {
    kind: 'go_on',
    begun: 'forked',
    answers: [],
    configPolicy: 'any',
    metadata: null,
    load: async () =>
      prompt === null
        ? { state: forkedState(await state, { runId, labels }), responses: [], last: null, isLogged: false }
        : null,
    otherwise:
      prompt === null
        ? null
        : async () => ({ kind: 'fresh', prompt, history: async () => inline(conversationBefore(await state)) }),
  }
  return {
    opening,
    calls: () =>
      new RecordedCalls(
        recorded,
        state.then(({ seq }) => seq),
      ),
  }
}

/** The state with which a fork begins. Throws `invalid_options` if the run had its answer. */
function forkedState(state: RunState, { runId, labels: given }: Pick<ForkedRun, 'runId' | 'labels'>): RunState {
  const { phase } = state
  if (phase.at === 'answered' && phase.resolution.kind === 'final' && !hasOtherRuns(state)) {
    throw new HarnessError(
      'invalid_options',
      'The run had its answer in this turn: give `prompt` to continue from there.',
    )
  }
  const labels = mergedLabels([given, state.labels ?? {}])
  return { ...state, runId, labels, parent: null, usage: NO_USAGE, ...otherRunsOfFork(state, runId) }
}

/** The conversation of a run so far, to be continued with another prompt. A prompt that was not sent is left out. */
function conversationBefore(state: RunState): Conversation {
  const { entries, ...view } = conversationOf(state)
  return { entries: state.phase.at === 'opening' ? entries.slice(0, state.firstEntry) : entries, ...view }
}

/** How the tools of a fork are run. */
export interface ForkEffects {
  /**
   * `live` (default): as usual. `dry`: only read-only tools run; the model reads what the others would have done. `recorded`: a call
   * of a tool with arguments that the recording has gets the result that it had there, each once; any other runs as in `dry`, and
   * counts as `usage.unrecorded`.
   */
  readonly effects?: 'live' | 'dry' | 'recorded' | undefined
  /** Handlers that replace those of tools, by name. */
  readonly mocks?: Readonly<Record<string, (args: JsonObject, context: ToolContext) => unknown>> | undefined
}

export function withEffects(
  tools: readonly ToolSpec[],
  { effects = 'live', mocks = {}, recorded }: ForkEffects & { readonly recorded?: RecordedCalls },
): readonly ToolSpec[] {
  // What a provider executes cannot be held up.
  const isSafe = ({ name, hosted, annotations }: ToolSpec): boolean =>
    effects === 'live' || hosted === undefined || annotations?.readOnly === true || Object.hasOwn(mocks, name)
  return tools.filter(isSafe).map((spec) => {
    const mock = Object.hasOwn(mocks, spec.name) ? mocks[spec.name] : undefined
    if (mock !== undefined)
      return { ...spec, hosted: undefined, call: async (args, context) => outcomeOf(await mock(args, context)) }
    if (effects === 'live') return spec
    const isRun = spec.annotations?.readOnly === true
    const dry: ToolSpec['call'] = isRun ? spec.call : async (args) => wouldDo(spec.name, args)
    if (recorded === undefined) return isRun ? spec : { ...spec, call: dry }
    return { ...spec, call: async (args, context) => (await recorded.take(spec, args, context)) ?? dry(args, context) }
  })
}

function wouldDo(name: string, args: JsonObject): ReturnType<typeof outcomeOf> {
  const content = `This is a dry run: \`${name}\` was not run. It would have been called with ${plainJsonText(args)}`
  return { kind: 'succeeded', content, metadata: { would_do: true } }
}
