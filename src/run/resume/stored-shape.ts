import type { CallDecision, PendingItem, ResumeState } from '#contracts/result.js'
import type { RunUsage } from '#contracts/run-usage.js'
import { tokenCounts } from '#contracts/entry.js'
import { CONTENT_SOURCE as source } from '#core/extension/hooks.js'
import { NOTICE_KEY } from '#core/loop/limit-notices.js'
import { isObject } from '#util/json.js'
import type { JsonValue } from '#util/json.js'
import {
  anything,
  boolean,
  either,
  jsonObject,
  leaf,
  list,
  matching,
  mutable,
  nullable,
  number,
  object,
  oneOf,
  optional,
  partial,
  record,
  string,
  union,
} from '#util/validate.js'
import type { Fields, Shape } from '#util/validate.js'
import type { ApprovalAnswer, DeclinedAnswer, KeptAnswer, QuestionAnswer, Verdict } from '#core/state/answers.js'
import type { BatchCall } from '#core/state/batch-call.js'
import type { ChildReference } from '#core/state/child-state.js'
import { FORMAT_VERSION } from '#core/state/events.js'
import type { Background } from '#core/state/background-state.js'
import type { RunRules } from '#core/state/run-rules.js'
import type { SettledCall } from '#core/state/call-endings.js'
import type { Answered, Batch, Phase, Position, RunState } from '#core/state/state.js'
import type { View } from '#core/state/view.js'
import { content, count, json, native, parts, transcriptShape } from './transcript-shape.js'

const amount = number(0)

/** A word of a list that may grow. */
function word<T extends string>(): Shape<T> {
  return leaf('a string', (value) => typeof value === 'string')
}

/** The state of a child run: it is read as a state when that run continues. */
const childState = either(
  object<ChildReference>({ runId: string, seq: count, digest: string }),
  leaf<ResumeState>('a state', (value) => isObject(value) && 'kind' in value),
)

const by = optional(string)

const approvalFields: Fields<ApprovalAnswer> = {
  callId: string,
  approved: boolean,
  reason: optional(string),
  editedArguments: optional(jsonObject),
  by,
}

const questionFields: Fields<QuestionAnswer> = { callId: string, answer: json, by }

const declinedFields: Fields<DeclinedAnswer> = { callId: string, declined: oneOf(true), reason: optional(string), by }

export const approvalAnswer = object<ApprovalAnswer>(approvalFields)
export const questionAnswer = object<QuestionAnswer>(questionFields)
export const declinedAnswer = object<DeclinedAnswer>(declinedFields)

interface Kept {
  readonly key?: string
}

const key = optional(string)
const answers: Shape<readonly KeptAnswer[]> = list(
  either(
    object<ApprovalAnswer & Kept>({ ...approvalFields, key }),
    object<QuestionAnswer & Kept>({ ...questionFields, key }),
    object<DeclinedAnswer & Kept>({ ...declinedFields, key }),
  ),
)

const verdict = union<Verdict, 'outcome'>('outcome', {
  happened: object({ outcome: oneOf('happened'), result: optional(json) }),
  did_not_happen: object({ outcome: oneOf('did_not_happen') }),
  run_again: object({ outcome: oneOf('run_again') }),
})

/** The answer to an unknown outcome. */
export const verdictAnswer = object<Omit<QuestionAnswer, 'answer'> & { readonly answer: Verdict }>({
  callId: string,
  answer: verdict,
  by,
})

const decision = object<CallDecision>({
  decision: oneOf('allow', 'ask', 'deny'),
  extension: string,
  rule: nullable(string),
  reason: nullable(string),
  alsoAsked: optional(list(string)),
})

const waiting = list(
  object<PendingItem>({
    kind: oneOf('approval', 'question', 'unknown_outcome'),
    callId: string,
    toolName: string,
    arguments: string,
    payload: optional(json),
    key,
    answerSchema: optional(jsonObject),
    decision: optional(decision),
    provenance: optional(
      list(object({ argument: string, source, callId: string, match: oneOf('exact', 'near', 'taint') })),
    ),
    otherCalls: optional(
      list(
        object({
          callId: string,
          toolName: string,
          arguments: optional(string),
          when: oneOf('ended', 'before', 'after'),
        }),
      ),
    ),
    path: list(string),
  }),
)

const settled = object<SettledCall>({
  at: string,
  output: string,
  parts: nullable(parts),
  ok: boolean,
  cancelled: boolean,
  retryKind: nullable(string),
  source: optional(source),
  stale: optional(oneOf(true)),
})

const batchCall = object<BatchCall>({
  callId: string,
  name: string,
  arguments: string,
  started: boolean,
  entries: count,
  waiting,
  answers,
  verdict: nullable(verdict),
  children: list(childState),
  settled: nullable(settled),
  prepared: optional(partial({ arguments: string, cancelled: string })),
  holds: optional(list(string)),
  via: optional(string),
})

type Resolution = Answered['resolution']

const resolution = union<Resolution, 'kind'>('kind', {
  final: object({ kind: oneOf('final'), output: optional(json), mode: nullable(string), callId: nullable(string) }),
  retry_tool_output: object({ kind: oneOf('retry_tool_output'), callId: string, message: string }),
  retry_user_message: object({ kind: oneOf('retry_user_message'), message: string }),
  ask_again: object({ kind: oneOf('ask_again'), reason: oneOf('pause', 'empty', 'aborted') }),
  unexpected: object({ kind: oneOf('unexpected'), message: string }),
  blocked: object({ kind: oneOf('blocked'), code: oneOf('guard_blocked', 'hook_failed'), message: string }),
})

type PositionAt<At> = Extract<Position, { readonly at: At }>

const positions = {
  opening: object<PositionAt<'opening'>>({ at: oneOf('opening') }),
  asking: object<PositionAt<'asking'>>({
    at: oneOf('asking'),
    requestKind: word(),
    notices: list(string),
    submitted: optional(object({ provider: string, id: string })),
  }),
  answered: object<Answered>({ at: oneOf('answered'), resolution, retried: optional(oneOf(true)) }),
  batch: object<Batch>({
    at: oneOf('batch'),
    admitted: boolean,
    calls: list(batchCall),
    resumed: boolean,
    exceeded: nullable(object({ toolName: string, budget: count, count })),
  }),
}

const phase = union<Phase, 'at'>('at', {
  ...positions,
  ended: object({
    at: oneOf('ended'),
    stopReason: word(),
    output: optional(json),
    error: optional(
      object({
        code: word(),
        message: string,
        status: optional(amount),
        retryable: optional(oneOf(true)),
        failure: optional(word()),
      }),
    ),
    position: optional(union<Position, 'at'>('at', positions)),
  }),
})

const counted = { ...tokenCounts(() => count), hostedCalls: optional(record(count)), costUsd: nullable(amount) }

const usage = object<RunUsage>({
  modelRequests: count,
  toolCalls: count,
  cancelledToolCalls: count,
  outputRetries: count,
  toolRetries: record(count),
  hookFailures: count,
  scriptSteps: optional(count),
  unrecorded: optional(count),
  children: object({ modelRequests: count, toolCalls: count }),
  ...counted,
  byModel: record(object({ modelRequests: count, ...counted })),
})

const view = object<View>({
  generation: count,
  changedAt: count,
  changes: list(object({ from: string, to: string, shown: content, native, sources: list(source) })),
  prepared: optional(list(object({ policy: string, from: string, to: string, shown: string }))),
})

const rules = object<RunRules>({
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
  computed: optional(oneOf(true)),
  callsBefore: optional(count),
  dry: optional(oneOf(true)),
  stall: optional(
    object({
      noticeAfter: nullable(count),
      answerAfter: nullable(count),
      stopAfter: nullable(count),
      ignore: list(string),
    }),
  ),
})

const background = object<Background>({
  runs: list(
    object({
      id: string,
      callId: string,
      toolName: string,
      key: string,
      childRunId: string,
      agent: string,
      task: string,
      arguments: string,
      askedBefore: optional(record(json)),
      waiting,
      answers,
      state: nullable(childState),
    }),
  ),
  reports: list(object({ callId: string, content: string, source })),
})

const returned = leaf<[string, JsonValue]>(
  'a call id and a value',
  (value) => Array.isArray(value) && value.length === 2 && typeof value[0] === 'string',
)

/** A state with the raw replies and the signature that may be stored with it. */
interface StoredRunState extends RunState {
  readonly responses?: readonly unknown[]
  readonly signature?: string
}

/** The stored form of a run's state, in the current format. */
export const runStateShape = object<StoredRunState>({
  kind: oneOf('run_state'),
  version: oneOf(FORMAT_VERSION),
  runId: string,
  parent: nullable(object({ runId: string, callId: string, agentName: string })),
  seq: count,
  startedAt: string,
  begunAt: string,
  updatedAt: string,
  root: string,
  provider: string,
  model: string,
  metadata: jsonObject,
  labels: optional(record(string)),
  rules,
  config: nullable(object({ instructions: string, tools: record(string), output: string, limits: string })),
  transcript: mutable(transcriptShape),
  firstEntry: count,
  phase,
  usage,
  told: mutable(list(matching(NOTICE_KEY, 'the key of a notice, such as `limit_warning:tool_calls:1`'))),
  traceparent: optional(string),
  closing: nullable(object({ kind: word(), limit: amount, count: amount })),
  staleTurns: count,
  streaks: record(count),
  notes: record(
    object({
      cancelled: optional(oneOf(true)),
      approval: optional(object({ approved: boolean, reason: optional(string) })),
      call: optional(object({ name: string, arguments: string, via: string })),
    }),
  ),
  background: optional(background),
  queued: optional(oneOf(true)),
  paused: optional(word()),
  view: optional(view),
  hostNotices: optional(record(object({ entryId: string, digest: string }))),
  recorded: optional(record(mutable(list(json)))),
  values: optional(mutable(list(returned))),
  responses: optional(list(anything<unknown>())),
  signature: optional(string),
})
