import { HarnessError } from '#contracts/errors.js'
import type { PendingItem } from '#contracts/result.js'
import { isObject } from '#util/json.js'
import { shownValue } from '#util/mismatch.js'
import { parseAs } from '#util/validate.js'
import type { ParsedShape } from '#util/validate.js'
import { didYouMean } from '#util/suggest.js'
import type { Answer } from '#core/state/answers.js'
import { approvalAnswer, declinedAnswer, questionAnswer, verdictAnswer } from './stored-shape.js'

/** A copy of the answers: objects with a `callId` that is unique among them. Throws `invalid_answer`. */
export function readAnswers(given: unknown): readonly Answer[] {
  if (!Array.isArray(given)) throw invalidAnswer(`Expected the answers to be a list, got ${shownValue(given)}.`)
  const seen = new Set<string>()
  return given.map((answer: unknown) => {
    const { callId } = isObject(answer) ? answer : {}
    if (!isObject(answer) || typeof callId !== 'string')
      throw invalidAnswer(`Expected an answer to be an object with a \`callId\`, got ${shownValue(answer)}.`)
    if (seen.has(callId)) throw invalidAnswer(`There are two answers to \`${callId}\`.`)
    seen.add(callId)
    return copyOf(answer, callId)
  })
}

function copyOf(answer: unknown, callId: string): Answer {
  try {
    return JSON.parse(JSON.stringify(answer)) as Answer
  } catch {
    throw invalidAnswer(`The answer to \`${callId}\` is not plain JSON.`)
  }
}

/** Throws `invalid_answer` unless there are answers, and each is for an item that waits and of that item's kind. */
export function matchAnswers(answers: readonly Answer[], pending: readonly PendingItem[]): void {
  if (answers.length === 0) throw invalidAnswer(`No answer was given. ${waiting(pending)}`)
  for (const answer of answers) {
    const { callId } = answer
    const item = pending.find((each) => each.callId === callId)
    if (item === undefined) {
      const known = pending.map((each) => each.callId)
      throw invalidAnswer(
        `Nothing waits for an answer to \`${callId}\`.${didYouMean(callId, known)} ${waiting(pending)}`,
      )
    }
    const problem = kindProblem(answer, item.kind)
    if (problem !== undefined) throw invalidAnswer(problem)
  }
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

function problemOf(parsed: ParsedShape<Answer>): string | undefined {
  return parsed.ok ? undefined : parsed.problem
}

function waiting(pending: readonly PendingItem[]): string {
  const items = pending.map(({ callId, toolName }) => `\`${callId}\` (${toolName})`)
  return items.length === 0 ? 'The run is not waiting for answers.' : `Waiting: ${items.slice(0, 20).join(', ')}.`
}

export function invalidAnswer(message: string): HarnessError {
  return new HarnessError('invalid_answer', message)
}
