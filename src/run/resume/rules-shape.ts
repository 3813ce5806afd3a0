import { boolean, integer, list, nullable, number, object, oneOf, optional, record, string } from '#util/shape.js'
import type { RunRules } from '#core/state/rules.js'

const count = integer(0)
const amount = number(0)

/** The stored form of the rules of a run. */
export const rulesShape = object<RunRules>({
  limits: object({
    modelRequests: nullable(amount),
    toolCalls: nullable(amount),
    inputTokens: nullable(amount),
    outputTokens: nullable(amount),
    timeMs: nullable(amount),
    costUsd: nullable(amount),
  }),
  outputRetries: count,
  toolRetries: count,
  toolRetryBudgets: record(count),
  answersByTool: boolean,
  answersByJson: optional(oneOf(true)),
  onLimit: optional(oneOf('answer')),
  stall: optional(
    object({
      noticeAfter: nullable(count),
      answerAfter: nullable(count),
      stopAfter: nullable(count),
      ignore: list(string),
    }),
  ),
})
