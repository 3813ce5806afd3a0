import { HarnessError } from '#contracts/errors.js'
import type {
  HarnessResult,
  PausedResult,
  PendingItem,
  ResumeState,
  RunReport,
  StopReason,
  ToolCallRecord,
} from '#contracts/result.js'
import { citedSources, toolCallsOf } from '#contracts/entry.js'
import { FINAL_RESULT } from '../state/output-format.js'
import type { ToolEntry, TranscriptEntry } from '#contracts/entry.js'
import { signed } from './signature.js'
import type { SigningKey } from './signature.js'
import type { StoredChild } from '../state/child-state.js'
import { closedTranscript, complete } from '../state/closing.js'
import { withChildren } from '../state/nested-states.js'
import type { RunState } from '../state/state.js'
import { otherRunIds } from '../state/background-state.js'

/** The documents of the child runs that a run refers to. */
export interface ChildStates {
  /** The reference to a child run that the log holds, given its document. */
  refer(document: ResumeState): StoredChild
  /** Reads the documents of the child runs that a state contains. A child run that the log does not hold is left out. */
  load(state: RunState): Promise<void>
  /** The document of a child run; the reference itself if it is not known. */
  readonly of: (child: StoredChild) => StoredChild
}

/** The parts of a stored state that are not in the state. */
export interface DocumentMeans {
  readonly responses: readonly unknown[]
  readonly signingKey: SigningKey | null
  /** The document of a child run; its reference if the log does not hold it. */
  readonly childOf: (child: StoredChild) => StoredChild
}

/** The result for the caller. `state` is the run's own: it is copied only when `resumeState` is read. */
export function resultOf<Output>(
  state: RunState,
  answer: { text: string; output: Output; pending: readonly PendingItem[] },
  means: DocumentMeans,
): HarnessResult<Output> {
  let resumeState: { readonly seq: number; readonly document: ResumeState } | undefined
  let records: readonly ToolCallRecord[] | undefined
  const { text, output, pending } = answer
  const report = {
    runId: state.runId,
    text,
    // A hook that is asked at the end of the run can still fail, and is counted.
    get usage() {
      return state.usage
    },
    get toolCallRecords() {
      return (records ??= recordsOf(state, state.transcript))
    },
    get sources() {
      return citedSources(state.transcript.slice(state.firstEntry))
    },
    get resumeState(): ResumeState {
      // Made again after the end of the run was emitted: a hook may have read it before that.
      if (resumeState?.seq !== state.seq) {
        const document = documentOf(state, pending.length > 0 ? means : { ...means, responses: [] })
        resumeState = { seq: state.seq, document }
      }
      return resumeState.document
    },
    transcript: state.transcript,
    responses: means.responses,
  }
  const [first, ...others] = pending
  if (first === undefined)
    return Object.assign(report, { status: 'completed', output, stopReason: 'end_turn', pending: [] } as const)
  const stopReason = pauseReason(pending)
  return withoutOutput(Object.assign(report, { status: 'paused', stopReason, pending: [first, ...others] } as const))
}

/** Reading the output of a paused run is a mistake of its reader; looking at the result as a whole is none. */
function withoutOutput<Result extends { readonly runId: string }>(result: Result): Result & { readonly output: never } {
  const get = (): never => {
    const message = `Run \`${result.runId}\` is paused: it has no output until \`harness.resume\` has continued it. Check \`result.status\` first.`
    throw new HarnessError('invalid_state', message)
  }
  return Object.defineProperty(result, 'output', { get, enumerable: false }) as Result & { readonly output: never }
}

/** The report of a run that failed. Its transcript is closed, even if the log could not store the end. */
export function reportOf(state: RunState, stopReason: StopReason, means: DocumentMeans): RunReport {
  const transcript = closedTranscript(state)
  let resumeState: ResumeState | undefined
  return {
    runId: state.runId,
    stopReason,
    usage: state.usage,
    toolCallRecords: recordsOf(state, transcript),
    transcript,
    responses: means.responses,
    get resumeState() {
      return (resumeState ??= documentOf(endedState(state, stopReason), { ...means, responses: [] }))
    },
  }
}

/** The state of a run that failed, also if its log could not store its end. */
function endedState(state: RunState, stopReason: StopReason): RunState {
  return state.phase.at === 'ended' ? state : { ...state, phase: { at: 'ended', stopReason, position: state.phase } }
}

function pauseReason(pending: readonly PendingItem[]): PausedResult['stopReason'] {
  return pending.some((item) => item.kind === 'approval') ? 'approval_required' : 'input_required'
}

/**
 * The state as a document that stands alone, for the caller. A run that has its answer, and waits for no other run, is
 * closed in it, so that it can be continued at once.
 */
export function documentOf(state: RunState, { responses, signingKey, childOf }: DocumentMeans): ResumeState {
  const copy = stateDocument(withChildren(state, childOf), responses)
  if (copy.phase.at === 'answered' && otherRunIds(copy).length === 0)
    complete(copy, { stopReason: 'end_turn', at: copy.updatedAt })
  return signingKey === null ? copy : signed(copy, signingKey)
}

/** The state as it stands, as a document. It has the raw replies of a paused run, since no event contains them. */
export function stateDocument(state: RunState, responses: readonly unknown[]): RunState & ResumeState {
  const document = responses.length > 0 ? { ...state, responses } : state
  return JSON.parse(JSON.stringify(document)) as RunState & ResumeState
}

/** Every answered call of the run with its result as the model read it, in model order. */
function recordsOf(state: RunState, transcript: readonly TranscriptEntry[]): ToolCallRecord[] {
  const entries = transcript.slice(state.firstEntry)
  const answers = new Map(entries.filter((entry) => entry.role === 'tool').map((entry) => [entry.callId, entry]))
  return entries
    .flatMap((entry) => (entry.role === 'assistant' ? toolCallsOf(entry.parts) : []))
    .flatMap(({ callId, name, arguments: text }) => {
      const answer = answers.get(callId)
      if (answer === undefined || (state.rules.answersByTool && name === FINAL_RESULT)) return []
      const { call, ...note } = state.notes[callId] ?? {}
      return [{ call: { id: callId, name, arguments: text, ...call }, output: envelopeText(answer), ...note }]
    })
}

function envelopeText({ content }: ToolEntry): string {
  if (typeof content === 'string') return content
  const first = content[0]
  return first?.type === 'text' ? first.text : ''
}
