import type { PendingItem } from '#contracts/result.js'
import type { KeptAnswer, Verdict } from './answers.js'
import type { StoredChild } from './child-state.js'
import type { SettledCall } from './call-endings.js'

/** The answers of the hooks before a call. */
export interface PreparedCall {
  /** Raw JSON text in place of the model's arguments. */
  readonly arguments?: string
  /** Why the call is not run. */
  readonly cancelled?: string
}

/** One tool call of a batch, and how far it has come. */
export interface BatchCall {
  readonly callId: string
  readonly name: string
  readonly arguments: string
  /** The tool that the model called, if that call stands for this one. */
  readonly via?: string
  /** The call has started; false again if it may be started once more. */
  started: boolean
  /** How often it was started. */
  entries: number
  /** The questions that people must answer before it can continue: its own, and those of runs that it started. */
  waiting: readonly PendingItem[]
  /** The answers so far; kept while the call runs with them. */
  answers: readonly KeptAnswer[]
  /** A person's verdict on an unknown outcome. */
  verdict: Verdict | null
  /** Runs that it started, as they were when it had to wait: those that wait, and those that had ended. */
  children: readonly StoredChild[]
  settled: SettledCall | null
  /** The answers of the `before_tool_call` hooks; absent until they have been asked. */
  prepared?: PreparedCall
  /** Calls of the batch that wait until this one has ended. */
  holds?: readonly string[]
}

/** The names of a call, for its events. */
export function namesOf({ callId, name: toolName, via }: BatchCall): Names {
  return via === undefined ? { callId, toolName } : { callId, toolName, via }
}

type Names = Pick<BatchCall, 'callId' | 'via'> & { readonly toolName: string }

/** A call that people are asked about, and their answers. */
export interface AskedCall {
  readonly callId: string
  readonly waiting: readonly PendingItem[]
  readonly answers: readonly KeptAnswer[]
  readonly verdict: Verdict | null
}

/** The questions of a call that have no answer yet. */
export function unanswered(call: AskedCall): readonly PendingItem[] {
  return call.waiting.filter((item) =>
    asksVerdict(call, item) ? call.verdict === null : !call.answers.some((answer) => answers(answer, item)),
  )
}

/** True if the item asks for the outcome of the call itself. */
export function asksVerdict({ callId }: AskedCall, item: PendingItem): boolean {
  return item.kind === 'unknown_outcome' && item.callId === callId
}

/** A call may be approved first and then ask something of its own, both under its id. */
function answers(answer: KeptAnswer, { callId, kind, key }: PendingItem): boolean {
  if (answer.callId !== callId) return false
  return kind === 'approval' ? 'approved' in answer : !('approved' in answer) && answer.key === key
}
