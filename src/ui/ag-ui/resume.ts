import type { Answer, JsonObject, JsonValue, PendingItem } from '../../index.js'
import { isClientCall } from '../../session/tools/client-tools.js'
import { isObject } from '../../util/json.js'

/** An entry of `resume` in the input of a run. */
export interface ResumeEntry {
  readonly interruptId: string
  readonly status: 'resolved' | 'cancelled'
  readonly payload?: unknown
}

export interface ResumeAnswers {
  readonly answers: readonly Answer[]
  /** Entries that name nothing that waits. */
  readonly stale: readonly string[]
  /** Items that have no entry, or an entry that does not answer them. The run continues when there are none. */
  readonly open: readonly PendingItem[]
}

const UNDECIDED = 'The person did not decide.'

/** A result that a page sends for a call of one of its own tools. */
export interface ClientResult {
  readonly toolCallId: string
  readonly content: string
  readonly error?: string
}

/** The results for the calls of client tools that wait. */
export function clientAnswers(results: readonly ClientResult[], pending: readonly PendingItem[]): readonly Answer[] {
  return pending.filter(isClientCall).flatMap(({ callId, path }): Answer[] => {
    // A call whose id an earlier run of the thread has is shown under the id of its run.
    const result = results.findLast(({ toolCallId: id }) => id === callId || id === `${path[0] ?? ''}:${callId}`)
    if (result === undefined) return []
    return [{ callId, answer: result.error === undefined ? result.content : { error: result.error } }]
  })
}

/** The answers in the entries of `resume` to the items that wait. The run checks whether they fit. */
export function resumeAnswers(entries: readonly ResumeEntry[], pending: readonly PendingItem[]): ResumeAnswers {
  const waiting = new Map(pending.map((item) => [item.callId, item]))
  const answers = new Map<string, Answer>()
  for (const entry of entries) {
    const item = waiting.get(entry.interruptId)
    const answer = item === undefined ? null : answerOf(entry, item)
    if (answer !== null) answers.set(answer.callId, answer)
  }
  return {
    answers: [...answers.values()],
    stale: entries.map(({ interruptId }) => interruptId).filter((id) => !waiting.has(id)),
    open: pending.filter((item) => !answers.has(item.callId) && !isClientCall(item)),
  }
}

function answerOf({ status, payload }: ResumeEntry, { callId, kind }: PendingItem): Answer | null {
  if (status === 'cancelled') {
    if (kind === 'unknown_outcome') return null
    return kind === 'approval'
      ? { callId, approved: false, reason: UNDECIDED }
      : { callId, declined: true, reason: UNDECIDED }
  }
  if (kind !== 'approval') return { callId, answer: payload as JsonValue }
  const { approved, reason, editedArgs } = isObject(payload) ? payload : {}
  // What does not fit is passed on as it is: the run refuses it.
  return {
    callId,
    approved: approved as boolean,
    ...(reason !== undefined && { reason: reason as string }),
    ...(editedArgs !== undefined && { editedArguments: editedArgs as JsonObject }),
  }
}
