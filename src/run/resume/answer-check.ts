import { HarnessError } from '../../contracts/errors.js'
import type { PendingItem } from '../../contracts/result.js'
import { checkArguments } from '../../tools/boundary/arguments.js'
import { plainJsonText } from '../../util/plain-json.js'
import { parseWith } from '../../schema/schema.js'
import type { ToolSpec } from '../../tools/spec.js'
import { isObject } from '../../util/json.js'
import type { JsonValue } from '../../util/json.js'
import { didYouMean } from '../../util/suggest.js'
import { unknownKey } from '../../util/unknown-key.js'
import { VERDICTS } from '../machine/answers.js'
import type { Answer, ApprovalAnswer } from '../machine/answers.js'
import type { RunState } from '../machine/state.js'
import { pendingOf } from './stored-state.js'

/** A copy of the answers, of which each names an item that waits, once, and is of its kind. Throws `invalid_answer`. */
export function readAnswers(given: unknown, pending: readonly PendingItem[]): readonly Answer[] {
  if (!Array.isArray(given)) throw invalid(`Expected the answers to be a list, got ${shown(given)}.`)
  if (given.length === 0) throw invalid(`No answer was given. ${waiting(pending)}`)
  const seen = new Set<string>()
  return given.map((answer: unknown) => {
    const { callId } = isObject(answer) ? answer : {}
    if (!isObject(answer) || typeof callId !== 'string')
      throw invalid(`Expected an answer to be an object with a \`callId\`, got ${shown(answer)}.`)
    const item = pending.find((each) => each.callId === callId)
    if (item === undefined)
      throw invalid(
        `Nothing waits for an answer to \`${callId}\`.${didYouMean(
          callId,
          pending.map((each) => each.callId),
        )} ${waiting(pending)}`,
      )
    if (seen.has(callId)) throw invalid(`There are two answers to \`${callId}\`.`)
    seen.add(callId)
    const problem = item.kind === 'approval' ? approvalProblem(answer) : questionProblem(answer, item)
    if (problem !== undefined) throw invalid(`The answer to \`${callId}\` cannot be used: ${problem}`)
    return JSON.parse(JSON.stringify(answer)) as Answer
  })
}

/**
 * Checks what only the questions and the tools know: answers against their schemas, and edited arguments of the run's
 * own calls; those of runs further down are checked when their calls come to be run.
 */
export async function checkAnswers(
  state: RunState,
  answers: readonly Answer[],
  tools: ReadonlyMap<string, ToolSpec>,
): Promise<void> {
  const pending = pendingOf(state)
  for (const answer of answers) {
    const item = pending.find(({ callId }) => callId === answer.callId)
    if (item === undefined) continue
    const problem =
      'answer' in answer ? await answerProblem(item, answer.answer) : await editProblem(item, answer, tools)
    if (problem !== undefined) throw invalid(`The answer to \`${answer.callId}\` cannot be used: ${problem}`)
  }
}

function approvalProblem(answer: Readonly<Record<string, unknown>>): string | undefined {
  const unknown = unknownKey(answer, ['callId', 'approved', 'reason', 'editedArguments'], 'field of an approval')
  if (unknown !== undefined) return unknown
  const { approved, reason, editedArguments } = answer
  if (typeof approved !== 'boolean') return `\`approved\` must be a boolean, got ${shown(approved)}.`
  if (reason !== undefined && typeof reason !== 'string') return `\`reason\` must be a text, got ${shown(reason)}.`
  if (editedArguments === undefined) return undefined
  if (!isObject(editedArguments)) return `\`editedArguments\` must be an object, got ${shown(editedArguments)}.`
  return approved ? undefined : 'a call that is rejected has no `editedArguments`.'
}

function questionProblem(answer: Readonly<Record<string, unknown>>, item: PendingItem): string | undefined {
  const unknown = unknownKey(answer, ['callId', 'answer'], 'field of an answer')
  if (unknown !== undefined) return unknown
  const value = answer['answer']
  if (value === undefined) return 'it has no `answer`.'
  return item.kind === 'unknown_outcome' ? verdictProblem(value) : undefined
}

function verdictProblem(value: unknown): string | undefined {
  const outcome = isObject(value) ? value['outcome'] : undefined
  if (!isObject(value) || !VERDICTS.some((each) => each === outcome)) {
    const known = VERDICTS.map((each) => `\`${each}\``).join(', ')
    return `\`answer.outcome\` must be one of ${known}, got ${shown(outcome)}.`
  }
  const unknown = unknownKey(value, ['outcome', 'result'], 'field of a verdict')
  if (unknown !== undefined) return unknown
  return value['result'] === undefined || outcome === 'happened' ? undefined : 'only what happened has a `result`.'
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
  tools: ReadonlyMap<string, ToolSpec>,
): Promise<string | undefined> {
  const spec = path.length === 1 ? tools.get(toolName) : undefined
  if (editedArguments === undefined || spec === undefined) return undefined
  const checked = await checkArguments(spec, JSON.stringify(editedArguments))
  return checked.ok ? undefined : checked.outcome.content
}

function waiting(pending: readonly PendingItem[]): string {
  const items = pending.map(({ callId, toolName }) => `\`${callId}\` (${toolName})`)
  return items.length === 0 ? 'The run waits for nobody.' : `Waiting: ${items.slice(0, 20).join(', ')}.`
}

function shown(value: unknown): string {
  if (value === undefined) return 'nothing'
  return isObject(value) || Array.isArray(value)
    ? 'something else'
    : `\`${(typeof value === 'string' ? value : plainJsonText(value)).slice(0, 60)}\``
}

function invalid(message: string): HarnessError {
  return new HarnessError('invalid_answer', message)
}
