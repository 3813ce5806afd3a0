import { isObject } from '../../util/json.js'
import { Derived, Each, KEPT, Members } from './members.js'
import type { Default } from './members.js'

// The members that the short form leaves out if they have these values. Stored logs depend on each of them: another value or
// another member is another form, with a number of its own (`short-form.ts`).

/** A member that the reader of the JSON knows. */
function known(name: string): Derived {
  return new Derived((whole) => whole[name])
}

const MODEL_USAGE = {
  modelRequests: 1,
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  costUsd: null,
}

const { modelRequests, ...TOKENS } = MODEL_USAGE

const USAGE = new Members({
  modelRequests,
  toolCalls: 0,
  cancelledToolCalls: 0,
  outputRetries: 0,
  toolRetries: {},
  hookFailures: 0,
  children: new Members({ modelRequests: 0, toolCalls: 0 }),
  ...TOKENS,
  byModel: new Each(new Members(MODEL_USAGE), Object.keys(MODEL_USAGE)),
})

const RULES = new Members({
  limits: new Members({
    modelRequests: 64,
    toolCalls: null,
    inputTokens: null,
    outputTokens: null,
    timeMs: null,
    costUsd: null,
  }),
  outputRetries: 1,
  toolRetries: 3,
  toolRetryBudgets: {},
  answersByTool: false,
})

/** The digests are those of an answer without a schema, and of the limits above. */
const CONFIG = new Members({
  instructions: KEPT,
  tools: {},
  output: '97294f05c3603881a6466e78',
  limits: 'a67de7a4b43698cfbee33574',
})

const REPLY = new Members({
  role: 'assistant',
  parts: KEPT,
  provider: KEPT,
  model: KEPT,
  finishReason: 'stop',
  usage: new Members({
    inputTokens: KEPT,
    outputTokens: KEPT,
    cacheReadTokens: null,
    cacheWriteTokens: null,
    reasoningTokens: null,
  }),
  id: KEPT,
  at: known('at'),
})

function limitOf(name: string): Derived {
  return new Derived(({ rules }) => {
    const limits = isObject(rules) ? rules['limits'] : undefined
    return isObject(limits) ? limits[name] : undefined
  })
}

type Defaults = Readonly<Record<string, Default>>

const OF_RUNS: Readonly<Record<string, Defaults>> = {
  run_started: {
    begun: 'fresh',
    prompt: KEPT,
    version: 2,
    root: KEPT,
    provider: KEPT,
    model: KEPT,
    maxModelRequests: limitOf('modelRequests'),
    maxToolCalls: limitOf('toolCalls'),
    metadata: {},
    rules: RULES,
    history: [],
  },
  model_request_started: {
    requestKind: 'tool_outputs',
    provider: KEPT,
    model: KEPT,
    entries: [],
    notices: [],
    config: CONFIG,
  },
  model_message: {
    finalizedOutputMode: null,
    entry: REPLY,
    resolution: { kind: 'final', mode: null, callId: null },
    nativeFinishReason: null,
    responseId: null,
    responseModel: null,
  },
  tool_call_completed: {
    callId: KEPT,
    toolName: KEPT,
    toolIndex: KEPT,
    ok: true,
    cancelled: false,
    retryKind: null,
    errorType: null,
    message: null,
  },
  run_completed: { stopReason: 'end_turn', usage: USAGE, pending: [] },
  run_failed: { stopReason: KEPT, code: KEPT, errorType: KEPT, message: KEPT, usage: USAGE },
}

const OF_THREADS: Readonly<Record<string, Defaults>> = {
  thread_opened: { version: 1, resourceId: null, title: '', tags: [], metadata: {}, mode: KEPT },
  message_queued: { messageId: KEPT, content: KEPT, by: null, mode: null, model: null, metadata: {} },
  run_begun: { runId: KEPT, messageIds: KEPT, mode: 'default', model: null },
}

const OF_ANY_RUN: Defaults = {
  kind: KEPT,
  runId: known('runId'),
  seq: KEPT,
  at: KEPT,
  durable: true,
  parentRunId: null,
  parentToolCallId: null,
  agentName: null,
}

const OF_ANY_THREAD: Defaults = {
  threadId: known('threadId'),
  seq: KEPT,
  at: KEPT,
  durable: true,
  after: null,
  kind: KEPT,
}

/** Members of every event. */
export const EVENTS = { run: membersOf(OF_ANY_RUN, OF_RUNS), thread: membersOf(OF_ANY_THREAD, OF_THREADS) } as const

interface EventMembers {
  readonly byKind: ReadonlyMap<unknown, Members>
  /** Of an event of any other kind. */
  readonly other: Members
}

function membersOf(base: Defaults, kinds: Readonly<Record<string, Defaults>>): EventMembers {
  const byKind = new Map<unknown, Members>()
  for (const [kind, own] of Object.entries(kinds))
    byKind.set(kind, new Members({ ...base, ...own }, 'config' in own ? ['config'] : []))
  return { byKind, other: new Members(base) }
}

/** Members of a run's digest. The row of the run has those that its reader knows. */
export const DIGEST = new Members({
  runId: known('runId'),
  phase: 'completed',
  stopReason: 'end_turn',
  startedAt: known('startedAt'),
  updatedAt: known('updatedAt'),
  endedAt: known('updatedAt'),
  provider: KEPT,
  model: KEPT,
  metadata: {},
  usage: USAGE,
  pending: [],
  parent: null,
  error: null,
  lastSeq: known('lastSeq'),
})
