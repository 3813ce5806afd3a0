import type { PendingItem } from '../../contracts/result.js'
import type { KeptAnswer, Verdict } from './answers.js'

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
