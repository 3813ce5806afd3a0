import type { PendingItem } from '#contracts/result.js'
import { parseWith } from '#schema/schema-check.js'
import { checkArguments } from '../tools/boundary/arguments.js'
import type { ToolSpec } from '../tools/tool-spec.js'
import type { JsonValue } from '#util/json.js'
import type { Answer, ApprovalAnswer } from '../state/answers.js'
import type { RunState } from '../state/state.js'
import { invalidAnswer } from '#run/resume/given-answers.js'
import { pendingOf } from '#run/resume/stored-state.js'

/**
 * Checks answers against the schemas of their questions, and edited arguments of the run's own calls against those of the
 * tools; the arguments of child runs are checked before their calls run. Throws `invalid_answer`.
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
    if (problem !== undefined) throw invalidAnswer(`The answer to \`${answer.callId}\` cannot be used: ${problem}`)
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
