import { HarnessError } from '../../contracts/errors.js'
import type { PendingItem } from '../../contracts/result.js'
import { checkArguments } from '../../tools/boundary/arguments.js'
import { parseWith } from '../../schema/schema.js'
import type { ToolSpec } from '../../tools/spec.js'
import { isObject } from '../../util/json.js'
import type { JsonValue } from '../../util/json.js'
import { didYouMean } from '../../util/suggest.js'
import { shown } from '../../util/mismatch.js'
import { parseAs } from '../../util/shape.js'
import type { Parsed } from '../../util/shape.js'
import type { Answer, ApprovalAnswer } from '../machine/answers.js'
import type { RunState } from '../machine/state.js'
import { approvalAnswer, declinedAnswer, questionAnswer, verdictAnswer } from './stored-shape.js'
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
    const problem = kindProblem(answer, item.kind)
    if (problem !== undefined) throw invalid(problem)
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

/** Why an answer is not of the kind that its item needs. */
function kindProblem(answer: Answer, kind: PendingItem['kind']): string | undefined {
  const name = `the answer to \`${answer.callId}\``
  if (kind === 'unknown_outcome') {
    return 'declined' in answer
      ? `An unknown outcome cannot be declined: \`answer\` of ${name} must be a verdict.`
      : problemOf(parseAs(verdictAnswer, answer, name))
  }
  if (kind === 'question') {
    return problemOf(
      'declined' in answer ? parseAs(declinedAnswer, answer, name) : parseAs(questionAnswer, answer, name),
    )
  }
  const approval = parseAs(approvalAnswer, answer, name)
  if (!approval.ok) return approval.problem
  const { approved, editedArguments } = approval.value
  return approved || editedArguments === undefined
    ? undefined
    : `A rejected call cannot have \`editedArguments\`, as in ${name}.`
}

function problemOf(parsed: Parsed<Answer>): string | undefined {
  return parsed.ok ? undefined : parsed.problem
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
  return items.length === 0 ? 'The run is not waiting for anybody.' : `Waiting: ${items.slice(0, 20).join(', ')}.`
}

function invalid(message: string): HarnessError {
  return new HarnessError('invalid_answer', message)
}
