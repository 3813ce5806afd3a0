import { admittedAnswer } from '#contracts/input.js'
import { rememberContinued } from '../../log/continued.js'
import type { Answer, ApprovalAnswer } from '../../state/answers.js'
import type { BatchCall } from '../../state/batch-call.js'
import { configDifferences, hasToolChanged } from '../../state/config-digest.js'
import type { ConfigPolicy } from '../../state/config-digest.js'
import { requestBreach } from '../../state/limit-checks.js'
import type { Breach } from '../../state/limit-checks.js'
import type { Ended, RunState } from '../../state/state.js'
import type { InputMessage } from '../../stream/input.js'
import { checkArguments } from '../../tools/boundary/check-arguments.js'
import type { ToolSpec } from '../../tools/tool-spec.js'
import { belowAnother, pendingOf } from '../decide.js'
import type { RunContext } from '../run-context.js'
import { RunStopped, failureError } from '../run-failure.js'
import type { LoadedRun, GoOnOpening, Opening, RunPlan } from '../run-plan.js'
import { RunSetup } from '../run-plan.js'
import { reportOf, resultOf, stateDocument } from '../run-result.js'
import { addedByHooks, askStart, drive, prepare, startedBy, tracedRun } from './start-run.js'
import type { Conducted } from './start-run.js'
import type { Ending } from '../turn/turn-driver.js'
import { textOf } from '#contracts/entry.js'
import { HarnessError } from '#contracts/errors.js'
import { hasFlows } from '#contracts/flows.js'
import type { HarnessResult, PendingItem } from '#contracts/result.js'
import { parseWith } from '#schema/schema-check.js'
import type { JsonValue } from '#util/json.js'

type Tools = ReadonlyMap<string, ToolSpec>

/** Continues a run from its state. Everything that can be refused is refused before the first event. */
export async function continueRun(run: Conducted, opening: GoOnOpening, found: LoadedRun): Promise<Ending> {
  const { context, plan } = run
  const { state, responses } = found
  if (context.parent === null && state.parent !== null) throw belowAnother(state.runId, state.parent)
  const metadata = opening.metadata ?? state.metadata
  context.prepareDeps(metadata)
  await context.openExtensions(state, { begun: opening.begun, metadata })
  const answers: Answer[] = []
  for (const answer of opening.answers)
    answers.push(await admittedAnswer(answer, (text) => context.admit(text, 'answer')))
  const prepared = await prepare(run, state)
  const setup = await RunSetup.open(context, plan, prepared, metadata)
  await checkConfig(state, setup, opening.configPolicy)
  if (context.parent === null) await checkAnswers(state, answers, setup.tools)
  const breach = isAnswered(state, answers) ? requestBreach(prepared.rules, state.usage) : undefined
  if (breach !== undefined && context.parent === null) throw staysPaused(context, found, breach)
  // Made before the run takes the state over and changes it.
  const before = found.isLogged ? {} : { state: stateDocument(state, responses) }
  context.adopt(state, responses, opening.metadata)
  context.tracer?.open(() => tracedRun(context, plan, state))
  const started = startedBy(run, prepared)
  const { seq } = state
  await context.emit('run_started', { begun: opening.begun, prompt: null, ...started, history: [], ...before })
  if (opening.begun !== 'forked' && context.recording === null)
    rememberContinued(context.log, { runId: state.runId, seq })
  forgetNothing(run, opening, state)
  context.signal.throwIfAborted()
  await askStart(run, null, prepared.rules)
  await takeAnswers(context, answers)
  // Nobody can give a child run a larger budget: it ends, or its question would be asked again with each of its siblings'.
  if (breach !== undefined) throw new RunStopped({ kind: 'limit', breach })
  const addition = state.phase.at === 'opening' ? await addedByHooks(context, promptOf(state)) : ''
  return drive(run, setup, addition)
}

/** Child runs of earlier stretches end with their calls, also if these do not start them again. */
function forgetNothing({ context, plan, end }: Conducted, { begun }: GoOnOpening, { phase }: RunState): void {
  if (begun === 'forked' || context.recording !== null) return
  const calls = phase.at === 'batch' ? phase.calls : []
  const named = calls.flatMap(({ children }) => children.map(({ runId }) => runId))
  const asked = calls.flatMap(({ waiting }) => waiting)
  const isAfterCrash = begun !== 'resumed' || asked.some(({ kind }) => kind === 'unknown_outcome')
  if (isAfterCrash || named.length > 0)
    end.onContinued((isPaused) => plan.host.endForgotten(context, { named, isAfterCrash, isPaused }))
}

/** The prompt of a run whose first request has not begun. */
export function promptOf({ transcript, firstEntry }: RunState): InputMessage {
  const entry = transcript[firstEntry]
  const content = entry?.role === 'user' ? entry.content : []
  const [first] = content
  return content.length === 1 && first?.type === 'text' ? first.text : content
}

/** The ending of a run that is not to continue: it has ended, or it waits for people who have not answered. */
export async function storedEnding<Output>(
  context: RunContext,
  plan: RunPlan,
  {
    found: { state, responses, last, isReopened },
    answers,
  }: { readonly found: LoadedRun; readonly answers: readonly Answer[] },
): Promise<HarnessResult<Output> | null> {
  // A fork is a run of its own, which waits in its own log.
  if (isBegun(plan.opening, 'forked')) return null
  const isOver = last === null || last.kind === 'run_completed' || last.kind === 'run_failed'
  const { phase } = state
  const retries = isReopened === true || isBegun(plan.opening, 'retried')
  if (retries && phase.at === 'ended' && phase.error !== undefined) return null
  const pending = pendingOf(state)
  if (!isOver || (phase.at !== 'ended' && (pending.length === 0 || answers.length > 0))) return null
  await context.fromLog(context.children.load(state))
  const announce = (result: HarnessResult<Output> | null): void => {
    if (context.parent === null && last !== null) context.emitStored(last, result)
  }
  if (phase.at === 'ended' && phase.error !== undefined) {
    announce(null)
    const { stopReason, error } = phase
    const run = reportOf(state, stopReason, context.documentMeans(responses))
    throw new HarnessError(error.code, error.message, { ...error, run })
  }
  const text = lastTextOf(state)
  const output = phase.at === 'ended' ? await answerOf(plan, phase, text) : null
  const result = resultOf(state, { text, output: output as Output, pending }, context.documentMeans(responses))
  announce(result)
  return context.forCaller(result)
}

function isBegun(opening: Opening, begun: GoOnOpening['begun']): boolean {
  return opening.kind === 'go_on' && opening.begun === begun
}

async function answerOf(plan: RunPlan, { output }: Ended, text: string): Promise<unknown> {
  return output === undefined ? text : plan.answer.read(output)
}

function lastTextOf({ transcript }: RunState): string {
  const last = transcript.findLast((entry) => entry.role === 'assistant')
  return last === undefined ? '' : textOf(last.parts)
}

/** People have answered for the calls of the current turn: if there is no request left for their results, none of them runs. */
function isAnswered({ phase }: RunState, answers: readonly Answer[]): boolean {
  return phase.at === 'batch' && (answers.length > 0 || phase.resumed)
}

function staysPaused(context: RunContext, { state, responses }: LoadedRun, breach: Breach): HarnessError {
  const { error } = failureError({ kind: 'limit', breach })
  const run = reportOf(state, 'limit_reached', context.documentMeans(responses))
  return new HarnessError(error.code, `${error.message} The run stays paused.`, { run })
}

/** Stored together, so that a crash cannot lose some of them. */
async function takeAnswers(context: RunContext, answers: readonly Answer[]): Promise<void> {
  if (answers.length === 0) return
  const resumed = context.emit('approval_resumed', { decisions: answers })
  await Promise.all([
    resumed,
    ...answers.map((answer) => context.emit('answer_received', { callId: answer.callId, answer })),
  ])
}

/**
 * Refuses to continue with a configuration that the policy forbids, and with a tool that no longer needs the approval that its
 * call waits for. A call that needs an approval and has none is shown to a person again.
 */
async function checkConfig(state: RunState, { config, tools }: RunSetup, policy: ConfigPolicy): Promise<void> {
  const open = state.phase.at === 'batch' ? state.phase.calls.filter(({ settled }) => settled === null) : []
  if (state.config !== null && policy !== 'any') {
    const { config: before } = state
    const changedCalls = open.filter(({ name }) => hasToolChanged(before, config, name))
    const breaking = (await Promise.all(changedCalls.map((call) => misfitOf(call, tools)))).filter(
      (each) => each !== null,
    )
    if (breaking.length > 0) throw changed(state.runId, 'breaking', [...new Set(breaking)])
    const differences = policy === 'same' ? configDifferences(before, config) : []
    if (differences.length > 0) throw changed(state.runId, 'compatible', differences)
  }
  const free = open.find((call) => tools.get(call.name)?.requiresApproval === false && isHeldByTool(call))
  if (free !== undefined) throw needlessApproval(free)
}

/** Why a call cannot run by the tool as it is now; null if it can. */
async function misfitOf({ callId, name, prepared, ...call }: BatchCall, tools: Tools): Promise<string | null> {
  const spec = tools.get(name)
  if (spec === undefined) return `tool \`${name}\` is gone`
  const checked = await checkArguments(spec, prepared?.arguments ?? call.arguments)
  if (checked.ok && checked.repairs.length === 0) return null
  const problems = checked.ok ? checked.repairs : checked.outcome.content.split('\n').filter((line) => /^- /.test(line))
  const why = problems.map((problem) => problem.replace(/^- /, '')).join('; ')
  return `tool \`${name}\` does not take the arguments of call \`${callId}\`: ${why}`
}

/** The call waits for an approval that its tool asked for, not a policy. */
function isHeldByTool({ callId, entries, waiting }: BatchCall): boolean {
  const item = waiting.find((each) => each.kind === 'approval' && each.callId === callId)
  return entries === 0 && item !== undefined && item.decision === undefined && !hasFlows(item)
}

function changed(runId: string, kind: string, differences: readonly string[]): HarnessError {
  const message = `Run \`${runId}\` cannot continue: its configuration has changed (${kind}: ${differences.join(', ')}). Pass the old configuration, or \`configPolicy\`.`
  return new HarnessError('invalid_state', message)
}

function needlessApproval({ callId, name }: BatchCall): HarnessError {
  const message = `Call \`${callId}\` of \`${name}\` waits for an approval that it does not need: the state or the tool was changed.`
  return new HarnessError('invalid_state', message)
}

/**
 * Checks answers against the schemas of their questions, and edited arguments of the run's own calls against those of the
 * tools; the arguments of child runs are checked before their calls run. Throws `invalid_answer`.
 */
async function checkAnswers(state: RunState, answers: readonly Answer[], tools: Tools): Promise<void> {
  const pending = pendingOf(state)
  for (const answer of answers) {
    const item = pending.find(({ callId }) => callId === answer.callId)
    if (item === undefined) continue
    const problem = await misfit(answer, item, tools)
    if (problem !== undefined)
      throw new HarnessError('invalid_answer', `The answer to \`${answer.callId}\` cannot be used: ${problem}`)
  }
}

async function misfit(answer: Answer, item: PendingItem, tools: Tools): Promise<string | undefined> {
  if ('declined' in answer) return undefined
  return 'answer' in answer ? answerProblem(item, answer.answer) : editProblem(item, answer, tools)
}

async function answerProblem({ answerSchema }: PendingItem, answer: JsonValue): Promise<string | undefined> {
  if (answerSchema === undefined) return undefined
  const parsed = await parseWith(answerSchema, answer)
  if (parsed.ok) return undefined
  return parsed.issues.map(({ path, message }) => `\`${['answer', ...path].join('.')}\`: ${message}`).join('; ')
}

async function editProblem(
  { toolName, path }: PendingItem,
  { editedArguments }: ApprovalAnswer,
  tools: Tools,
): Promise<string | undefined> {
  const spec = path.length === 1 ? tools.get(toolName) : undefined
  if (editedArguments === undefined || spec === undefined) return undefined
  const checked = await checkArguments(spec, JSON.stringify(editedArguments))
  return checked.ok ? undefined : checked.outcome.content
}
