import { isObject } from '../../util/json.js'
import { Derived, Each, Members } from './members.js'
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

const USAGE = new Members({
  ...MODEL_USAGE,
  toolCalls: 0,
  cancelledToolCalls: 0,
  outputRetries: 0,
  toolRetries: {},
  hookFailures: 0,
  children: new Members({ modelRequests: 0, toolCalls: 0 }),
  byModel: new Each(new Members(MODEL_USAGE)),
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

const REPLY = new Members({
  at: known('at'),
  role: 'assistant',
  finishReason: 'stop',
  usage: new Members({ cacheReadTokens: null, cacheWriteTokens: null, reasoningTokens: null }),
})

function limitOf(name: string): Derived {
  return new Derived(({ rules }) => {
    const limits = isObject(rules) ? rules['limits'] : undefined
    return isObject(limits) ? limits[name] : undefined
  })
}

type Kinds = Readonly<Record<string, Readonly<Record<string, Default>>>>

const OF_RUNS: Kinds = {
  run_started: {
    begun: 'fresh',
    version: 2,
    metadata: {},
    rules: RULES,
    history: [],
    maxModelRequests: limitOf('modelRequests'),
    maxToolCalls: limitOf('toolCalls'),
  },
  model_request_started: { requestKind: 'tool_outputs', entries: [], notices: [] },
  model_message: {
    finalizedOutputMode: null,
    entry: REPLY,
    resolution: { kind: 'final', mode: null, callId: null },
    nativeFinishReason: null,
    responseId: null,
    responseModel: null,
  },
  tool_call_completed: { ok: true, cancelled: false, retryKind: null, errorType: null, message: null },
  run_completed: { stopReason: 'end_turn', usage: USAGE, pending: [] },
  run_failed: { usage: USAGE },
}

const OF_THREADS: Kinds = {
  thread_opened: { version: 1, resourceId: null, title: '', tags: [], metadata: {} },
  message_queued: { by: null, mode: null, model: null, metadata: {} },
  run_begun: { mode: 'default', model: null },
}

/** Members of every event, in addition to its kind, number and time. */
export const EVENTS = {
  run: membersOf({ runId: known('runId'), durable: true, parentRunId: null, parentToolCallId: null, agentName: null }, OF_RUNS),
  thread: membersOf({ threadId: known('threadId'), durable: true, after: null }, OF_THREADS),
} as const

interface EventMembers {
  readonly byKind: ReadonlyMap<unknown, Members>
  /** Of an event of any other kind. */
  readonly other: Members
}

function membersOf(base: Readonly<Record<string, Default>>, kinds: Kinds): EventMembers {
  const other = new Members(base)
  const byKind = new Map(Object.entries(kinds).map(([kind, members]) => [kind as unknown, other.and(members)]))
  return { byKind, other }
}

/** Members of a run's digest. The first ones are in its row. */
export const DIGEST = new Members({
  runId: known('runId'),
  startedAt: known('startedAt'),
  updatedAt: known('updatedAt'),
  lastSeq: known('lastSeq'),
  phase: 'completed',
  stopReason: 'end_turn',
  endedAt: known('updatedAt'),
  metadata: {},
  usage: USAGE,
  pending: [],
  parent: null,
  error: null,
})
