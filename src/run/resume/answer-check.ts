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

/** A copy of the answers: objects with a `callId`, each of which is there once. Throws `invalid_answer`. */
export function readAnswers(given: unknown): readonly Answer[] {
  if (!Array.isArray(given)) throw invalid(`Expected the answers to be a list, got ${shown(given)}.`)
  const seen = new Set<string>()
  return given.map((answer: unknown) => {
    const { callId } = isObject(answer) ? answer : {}
    if (!isObject(answer) || typeof callId !== 'string')
      throw invalid(`Expected an answer to be an object with a \`callId\`, got ${shown(answer)}.`)
    if (seen.has(callId)) throw invalid(`There are two answers to \`${callId}\`.`)
    seen.add(callId)
    return JSON.parse(JSON.stringify(answer)) as Answer
  })
}

/** Throws `invalid_answer` unless there are answers, and each is for an item that waits and of that item's kind. */
export function matchAnswers(answers: readonly Answer[], pending: readonly PendingItem[]): void {
  if (answers.length === 0) throw invalid(`No answer was given. ${waiting(pending)}`)
  for (const answer of answers) {
    const { callId } = answer
    const item = pending.find((each) => each.callId === callId)
    if (item === undefined) {
      const known = pending.map((each) => each.callId)
      throw invalid(`Nothing waits for an answer to \`${callId}\`.${didYouMean(callId, known)} ${waiting(pending)}`)
    }
    const fields = answer as unknown as Readonly<Record<string, unknown>>
    const problem = item.kind === 'approval' ? approvalProblem(fields) : questionProblem(fields, item)
    if (problem !== undefined) throw invalid(`The answer to \`${callId}\` cannot be used: ${problem}`)
  }
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
    const problem = await misfit(answer, item, tools)
    if (problem !== undefined) throw invalid(`The answer to \`${answer.callId}\` cannot be used: ${problem}`)
  }
}

async function misfit(
  answer: Answer,
  item: PendingItem,
  tools: ReadonlyMap<string, ToolSpec>,
): Promise<string | undefined> {
  if ('declined' in answer) return undefined
  return 'answer' in answer ? answerProblem(item, answer.answer) : editProblem(item, answer, tools)
}

function approvalProblem(answer: Readonly<Record<string, unknown>>): string | undefined {
  const unknown = unknownKey(answer, ['callId', 'approved', 'reason', 'editedArguments', 'by'], 'field of an approval')
  const unusable = unknown ?? textProblem(answer, 'by') ?? textProblem(answer, 'reason')
  if (unusable !== undefined) return unusable
  const { approved, editedArguments } = answer
  if (typeof approved !== 'boolean') return `\`approved\` must be a boolean, got ${shown(approved)}.`
  if (editedArguments === undefined) return undefined
  if (!isObject(editedArguments)) return `\`editedArguments\` must be an object, got ${shown(editedArguments)}.`
  return approved ? undefined : 'a call that is rejected has no `editedArguments`.'
}

function questionProblem(answer: Readonly<Record<string, unknown>>, item: PendingItem): string | undefined {
  if ('declined' in answer) return declineProblem(answer, item)
  const unknown = unknownKey(answer, ['callId', 'answer', 'by'], 'field of an answer') ?? textProblem(answer, 'by')
  if (unknown !== undefined) return unknown
  const value = answer['answer']
  if (value === undefined) return 'it has no `answer`.'
  return item.kind === 'unknown_outcome' ? verdictProblem(value) : undefined
}

function declineProblem(answer: Readonly<Record<string, unknown>>, { kind }: PendingItem): string | undefined {
  if (kind === 'unknown_outcome') return 'an unknown outcome cannot be declined: `answer` must be a verdict.'
  const unknown = unknownKey(answer, ['callId', 'declined', 'reason', 'by'], 'field of an answer that declines')
  const unusable = unknown ?? textProblem(answer, 'reason') ?? textProblem(answer, 'by')
  if (unusable !== undefined || answer['declined'] === true) return unusable
  return `\`declined\` must be \`true\`, got ${shown(answer['declined'])}.`
}

function textProblem(answer: Readonly<Record<string, unknown>>, field: 'by' | 'reason'): string | undefined {
  const value = answer[field]
  return value === undefined || typeof value === 'string'
    ? undefined
    : `\`${field}\` must be a string, got ${shown(value)}.`
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
