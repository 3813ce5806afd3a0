import { withoutUndefined } from '#util/validate.js'
import type { Answer } from '#core/state/answers.js'
import type { JsonObject, JsonValue } from '#util/json.js'
import type { PendingItem } from '#contracts/result.js'
import { isObject } from '#util/json.js'
import type { AgUiInterrupt } from './event.js'
import type { AgUiOptions } from './options.js'
import { isClientCall } from '#session/tools/client-tools.js'

const APPROVAL = {
  type: 'object',
  properties: { approved: { type: 'boolean' }, reason: { type: 'string' } },
  required: ['approved'],
}

/** JSON Schema of a verdict. */
const VERDICT = {
  type: 'object',
  properties: { outcome: { enum: ['happened', 'did_not_happen', 'run_again'] }, result: {} },
  required: ['outcome'],
}

/** The interrupt of an item that waits for people. */
export function agUiInterrupt(
  item: PendingItem,
  toolCallId: string,
  { toolSchemas }: Pick<AgUiOptions, 'toolSchemas'>,
): AgUiInterrupt {
  const { callId: id, kind, toolName, path } = item
  return {
    id,
    ...interruptRequest(item, toolSchemas?.[toolName]),
    toolCallId,
    ...(path.length > 1 && { subagentRunId: path.at(-1) ?? '' }),
    metadata: { thinharness: { kind, ...interruptDetails(item) } },
  }
}

function interruptRequest(
  { kind, toolName, payload, answerSchema }: PendingItem,
  argumentsSchema: object = { type: 'object' },
): Pick<AgUiInterrupt, 'reason' | 'message'> & { readonly responseSchema: Readonly<Record<string, unknown>> } {
  const text = questionText(payload)
  if (kind === 'approval') {
    const properties = { ...APPROVAL.properties, editedArgs: argumentsSchema }
    const message = text ?? `May \`${toolName}\` run?`
    return { reason: 'tool_call', message, responseSchema: { ...APPROVAL, properties } }
  }
  if (kind === 'question') {
    const message = text ?? `\`${toolName}\` asks a question.`
    return { reason: 'input_required', message, responseSchema: answerSchema ?? {} }
  }
  const message = `\`${toolName}\` was interrupted: it is unknown whether it took effect.`
  return { reason: 'thinharness:unknown_outcome', message, responseSchema: VERDICT }
}

/** The question in a payload: a text, or the text that is called so. */
function questionText(payload: PendingItem['payload']): string | undefined {
  const text = isObject(payload) ? payload['question'] : payload
  return typeof text === 'string' ? text : undefined
}

function interruptDetails(item: PendingItem): object {
  const { toolName, arguments: text, payload, key, provenance, otherCalls, decision } = item
  return withoutUndefined({ toolName, arguments: text, payload, key, provenance, otherCalls, decision })
}

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
    const answer = item === undefined ? null : resumeAnswer(entry, item)
    if (answer !== null) answers.set(answer.callId, answer)
  }
  return {
    answers: [...answers.values()],
    stale: entries.map(({ interruptId }) => interruptId).filter((id) => !waiting.has(id)),
    open: pending.filter((item) => !answers.has(item.callId) && !isClientCall(item)),
  }
}

function resumeAnswer({ status, payload }: ResumeEntry, { callId, kind }: PendingItem): Answer | null {
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
