import type { Book } from '../reading/book.js'
import type { CallNode, EventPlace, RunNode } from '../reading/nodes.js'

/** Something that went wrong, or in circles. */
export interface RunProblem extends EventPlace {
  /** `failed_run`, `failed_call`, `loop`, `asked_again`, `lost_cache`, `retry`, `warning`. */
  readonly kind: ProblemKind
  /** In a sentence or a few words. */
  readonly text: string
  readonly at: number
  /** From 1; null: it belongs to no turn. */
  readonly turn: number | null
  readonly callId: string | null
  /** It ended the run, or is the reason why it got nowhere: these are shown first. */
  readonly isGrave: boolean
}

export type ProblemKind =
  'failed_run' | 'failed_call' | 'loop' | 'asked_again' | 'lost_cache' | 'retry' | 'interrupted' | 'warning'

/** So many calls that are the same and had the same result are a loop. */
const LOOP = 3

/**
 * The problems of a run and of its child runs, in the order of time.
 *
 * @example
 * problemsOf(book, 'run_1').find(({ isGrave }) => isGrave)
 */
export function problemsOf(book: Book, runId: string): readonly RunProblem[] {
  const run = book.run(runId)
  if (run === null) return []
  const children = book.childrenOf(runId).flatMap((child) => problemsOf(book, child.runId))
  const own = [...failuresIn(run), ...loopsIn(run), ...marksIn(run)]
  return [...own, ...children].sort((one, other) => one.at - other.at || one.seq - other.seq)
}

function failuresIn(run: RunNode): readonly RunProblem[] {
  return [...run.calls.values()].flatMap((call) =>
    call.state === 'failed'
      ? [ofCall(call, 'failed_call', `${call.toolName} failed: ${call.errorType ?? ''} ${call.result}`)]
      : [],
  )
}

/** The same call with the same arguments and the same result, again and again. */
function loopsIn(run: RunNode): readonly RunProblem[] {
  const same = new Map<string, CallNode[]>()
  for (const call of run.calls.values()) {
    if (call.endSeq === null) continue
    const key = `${call.key}\n${call.result}`
    const others = same.get(key)
    if (others === undefined) same.set(key, [call])
    else others.push(call)
  }
  return [...same.values()].flatMap((calls) => {
    const third = calls[LOOP - 1]
    if (third === undefined) return []
    const text = `${third.toolName} was called ${calls.length} times with the same arguments and the same result.`
    return [{ ...ofCall(third, 'loop', text), isGrave: true }]
  })
}

function ofCall(call: CallNode, kind: ProblemKind, text: string): RunProblem {
  const { runId, callId, turn, requestedAt, endedAt, endSeq, starts } = call
  const seq = endSeq ?? starts.at(-1) ?? 0
  return { runId, seq, kind, text: text.trim(), at: endedAt ?? requestedAt, turn, callId, isGrave: false }
}

function marksIn(run: RunNode): readonly RunProblem[] {
  const { runId } = run
  const found: RunProblem[] = []
  const add = (marks: RunNode['marks'], turn: number | null, callId: string | null): void => {
    for (const { seq, at, kind, text, isProblem } of marks)
      if (isProblem)
        found.push({
          runId,
          seq,
          kind: KINDS[kind] ?? 'warning',
          text,
          at,
          turn,
          callId,
          isGrave: kind === 'run_failed',
        })
  }
  add(run.marks, null, null)
  for (const turn of run.turns) {
    add(turn.marks, turn.index, null)
    for (const call of turn.calls) add(call.marks, turn.index, call.callId)
  }
  return found
}

const KINDS: Readonly<Record<string, ProblemKind | undefined>> = {
  run_failed: 'failed_run',
  background_reported: 'failed_call',
  model_retry: 'asked_again',
  cache_bust: 'lost_cache',
  transport_retry: 'retry',
  tool_call_interrupted: 'interrupted',
}
