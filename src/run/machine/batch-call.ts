import type { PendingItem } from '../../contracts/result.js'
import type { KeptAnswer, Verdict } from './answers.js'
import type { StoredChild } from './child-state.js'
import type { SettledCall } from './settled.js'

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
  /** Somebody began to perform it; unset when it may be begun anew. */
  started: boolean
  /** How often it was begun, with answers or anew. */
  entries: number
  /** What people have to answer before it can go on: what it asks itself, and what runs that it started ask. */
  waiting: readonly PendingItem[]
  /** What they have answered, also while it is performed with that. */
  answers: readonly KeptAnswer[]
  /** What a person said about an outcome that is not known. */
  verdict: Verdict | null
  /** Runs that it started, as they were when it had to wait: those that wait, and those that had ended. */
  children: readonly StoredChild[]
  settled: SettledCall | null
  /** The answers of the `before_tool_call` hooks; absent until they have been asked. */
  prepared?: PreparedCall
  /** Calls of the batch that wait until this one has ended. */
  holds?: readonly string[]
}

/** A call that people are asked about, and what they have said. */
export interface AskedCall {
  readonly callId: string
  readonly waiting: readonly PendingItem[]
  readonly answers: readonly KeptAnswer[]
  readonly verdict: Verdict | null
}

/** What of a call people have still to answer. */
export function unanswered(call: AskedCall): readonly PendingItem[] {
  return call.waiting.filter((item) =>
    asksVerdict(call, item) ? call.verdict === null : !call.answers.some((answer) => answers(answer, item)),
  )
}

/** Whether the item asks what became of the call itself. */
export function asksVerdict({ callId }: AskedCall, item: PendingItem): boolean {
  return item.kind === 'unknown_outcome' && item.callId === callId
}

/** A call may be approved first and then ask something of its own, both under its id. */
function answers(answer: KeptAnswer, { callId, kind, key }: PendingItem): boolean {
  if (answer.callId !== callId) return false
  return kind === 'approval' ? 'approved' in answer : !('approved' in answer) && answer.key === key
}
