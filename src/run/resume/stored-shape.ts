import {
  anything,
  count,
  either,
  flag,
  listOf,
  nullable,
  number,
  objectOf,
  oneOf,
  recordOf,
  taggedBy,
  text,
} from './stored-fields.js'
import { CONTENT_SOURCES } from '../../contracts/entry.js'
import type { Shape } from './stored-fields.js'
import { FORMAT_VERSION } from '../machine/events.js'

const json: Shape = anything
const maybeCount = nullable(count)
const maybeText = nullable(text)
const native = objectOf({ provider: text, data: json })

const contentPart = taggedBy('type', {
  text: objectOf({ type: text, text }),
  image: either(objectOf({ type: text, url: text }), objectOf({ type: text, data: text, mediaType: text })),
  file: objectOf({ type: text, data: text, mediaType: text }, { name: text }),
  audio: objectOf({ type: text, data: text, mediaType: text }),
})

const assistantPart = taggedBy('type', {
  text: objectOf({ type: text, text }, { native }),
  reasoning: objectOf({ type: text, text }, { native }),
  tool_call: objectOf({ type: text, callId: text, name: text, arguments: text }, { native }),
  opaque: objectOf({ type: text }, { native }),
})

const tokenUsage = objectOf(
  {
    inputTokens: maybeCount,
    outputTokens: maybeCount,
    cacheReadTokens: maybeCount,
    cacheWriteTokens: maybeCount,
    reasoningTokens: maybeCount,
  },
  { longCacheWriteTokens: count },
)

const finishReason = oneOf('stop', 'tool_calls', 'length', 'refusal', 'content_filter', 'pause', 'error', 'other')
const stamp = { id: text, at: text, role: text }

const source = objectOf({ kind: oneOf(...CONTENT_SOURCES) }, { name: text, tool: text })

const entry = taggedBy('role', {
  user: objectOf({ ...stamp, content: listOf(contentPart) }, { notice: oneOf(true), callId: text, source }),
  assistant: objectOf(
    { ...stamp, parts: listOf(assistantPart), provider: text, model: text, finishReason, usage: tokenUsage },
    { native },
  ),
  tool: objectOf(
    { ...stamp, callId: text, name: text, content: either(listOf(contentPart), text), isError: flag },
    { source },
  ),
})

/** The entries of a conversation. */
export const transcriptShape: Shape = listOf(entry)

const answer = either(
  objectOf({ callId: text, answer: json }, { key: text, by: text }),
  objectOf({ callId: text, declined: oneOf(true) }, { reason: text, key: text, by: text }),
  objectOf({ callId: text, approved: flag }, { reason: text, editedArguments: recordOf(json), by: text }),
)

const callDecision = objectOf({
  decision: oneOf('allow', 'ask', 'deny'),
  extension: text,
  rule: maybeText,
  reason: maybeText,
})

const pendingItem = objectOf(
  {
    kind: oneOf('approval', 'question', 'unknown_outcome'),
    callId: text,
    toolName: text,
    arguments: text,
    path: listOf(text),
  },
  {
    payload: json,
    key: text,
    answerSchema: recordOf(json),
    decision: callDecision,
    provenance: listOf(objectOf({ argument: text, source, callId: text, match: oneOf('exact', 'near', 'taint') })),
  },
)

const settled = objectOf(
  {
    at: text,
    output: text,
    parts: nullable(listOf(contentPart)),
    ok: flag,
    cancelled: flag,
    retryKind: maybeText,
  },
  { source, stale: oneOf(true) },
)

const batchCall = objectOf(
  {
    callId: text,
    name: text,
    arguments: text,
    started: flag,
    entries: count,
    waiting: listOf(pendingItem),
    answers: listOf(answer),
    verdict: nullable(objectOf({ outcome: oneOf('happened', 'did_not_happen', 'run_again') }, { result: json })),
    // Each is read as a state of its own when its run goes on.
    children: listOf(recordOf(json)),
    settled: nullable(settled),
  },
  { prepared: objectOf({}, { arguments: text, cancelled: text }), holds: listOf(text) },
)

const endedError = objectOf({ code: text, message: text }, { status: number, retryable: oneOf(true) })

const positions = {
  opening: objectOf({ at: text }),
  asking: objectOf({ at: text, requestKind: text, notices: listOf(text) }),
  answered: objectOf({ at: text, resolution: recordOf(json) }, { retried: oneOf(true) }),
  batch: objectOf({
    at: text,
    admitted: flag,
    calls: listOf(batchCall),
    resumed: flag,
    exceeded: nullable(objectOf({ toolName: text, budget: count, count })),
  }),
}

const phase = taggedBy('at', {
  ...positions,
  ended: objectOf(
    { at: text, stopReason: text },
    { output: json, error: endedError, position: taggedBy('at', positions) },
  ),
})

const limits = recordOf(nullable(number))
const breach = objectOf({ kind: text, limit: number, count: number })

const rules = objectOf(
  {
    limits,
    outputRetries: count,
    toolRetries: count,
    toolRetryBudgets: recordOf(count),
    answersByTool: flag,
  },
  {
    onLimit: oneOf('answer'),
    stall: objectOf({ noticeAfter: maybeCount, answerAfter: maybeCount, stopAfter: maybeCount, ignore: listOf(text) }),
  },
)

const modelUsage = objectOf({
  modelRequests: count,
  inputTokens: count,
  outputTokens: count,
  cacheReadTokens: count,
  cacheWriteTokens: count,
  reasoningTokens: count,
  costUsd: nullable(number),
})

const usage = objectOf({
  modelRequests: count,
  toolCalls: count,
  cancelledToolCalls: count,
  outputRetries: count,
  toolRetries: recordOf(count),
  hookFailures: count,
  children: objectOf({ modelRequests: count, toolCalls: count }),
  inputTokens: count,
  outputTokens: count,
  cacheReadTokens: count,
  cacheWriteTokens: count,
  reasoningTokens: count,
  costUsd: nullable(number),
  byModel: recordOf(modelUsage),
})

const backgroundRun = objectOf(
  {
    ...{
      id: text,
      callId: text,
      toolName: text,
      key: text,
      childRunId: text,
      agent: text,
      task: text,
      arguments: text,
    },
    waiting: listOf(pendingItem),
    answers: listOf(answer),
    // Read as a state of its own when its run goes on.
    state: nullable(recordOf(json)),
  },
  // `answer` is that of states of an earlier version.
  { askedBefore: recordOf(json), answer: json },
)

const background = objectOf({
  runs: listOf(backgroundRun),
  reports: listOf(objectOf({ callId: text, content: text, source })),
})

const change = objectOf({ from: text, to: text, shown: either(listOf(contentPart), text), sources: listOf(source) })
const view = objectOf({ generation: count, changedAt: count, changes: listOf(change) })
const hostNotices = recordOf(objectOf({ entryId: text, digest: text }))

/** The stored form of a run's state, version 1. */
export const runStateShape: Shape = objectOf(
  {
    kind: oneOf('run_state'),
    version: oneOf(FORMAT_VERSION),
    runId: text,
    parent: nullable(objectOf({ runId: text, callId: text, agentName: text })),
    seq: count,
    startedAt: text,
    begunAt: text,
    updatedAt: text,
    root: text,
    provider: text,
    model: text,
    metadata: recordOf(json),
    rules,
    config: nullable(objectOf({ instructions: text, tools: recordOf(text), output: text, limits: text })),
    transcript: transcriptShape,
    firstEntry: count,
    phase,
    usage,
    told: listOf(text),
    closing: nullable(breach),
    staleTurns: count,
    streaks: recordOf(count),
    notes: recordOf(objectOf({}, { cancelled: oneOf(true), approval: objectOf({ approved: flag }, { reason: text }) })),
  },
  {
    ...{ traceparent: text, background, paused: text, view, hostNotices, recorded: recordOf(listOf(json)) },
    ...{ responses: listOf(anything), signature: text },
  },
)
