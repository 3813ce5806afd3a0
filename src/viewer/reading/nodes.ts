import type { JsonValue } from '#util/json.js'

/** An event of a page: `#run=…&seq=…`. */
export interface EventPlace {
  readonly runId: string
  readonly seq: number
}

/** Why a log, or a line of it, is not shown as what it is. */
export interface Damage {
  /** Its line in the log of the run, from 1. */
  readonly line: number
  readonly kind: 'cut' | 'broken' | 'unknown_kind' | 'later_format' | 'missing'
  /** In a sentence. */
  readonly message: string
}

export type RunNodeState = 'queued' | 'running' | 'paused' | 'completed' | 'failed' | 'cancelled'

/** A run in the outline. Times are ms since 1970; texts are beginnings, in one line. */
export interface RunNode {
  readonly runId: string
  readonly parentRunId: string | null
  readonly parentCallId: string | null
  readonly agentName: string | null
  readonly state: RunNodeState
  readonly stopReason: string | null
  readonly error: { readonly code: string; readonly message: string } | null
  /** How its last stretch began: `fresh`, `resumed`, `recovered`, `retried`, `forked`. */
  readonly begun: string
  /** `provider:model`, as it last began. */
  readonly model: string
  readonly prompt: string
  /** Its first and its last event; 0 without one. */
  readonly startedAt: number
  readonly updatedAt: number
  readonly turns: readonly TurnNode[]
  /** Times without work: it waited for people, or for a process. */
  readonly pauses: readonly Pause[]
  /** Events that belong to no turn. */
  readonly marks: readonly Mark[]
  /** Of the last event that had it, as the log says. */
  readonly usage: JsonValue | null
  /** The limits that it began with, by name; absent ones are null. */
  readonly limits: Readonly<Record<string, number | null>>
  /** Null unless a reply is arriving. */
  readonly open: OpenText | null
  /** Calls by id, in the order of the requests. */
  readonly calls: ReadonlyMap<string, CallNode>
  readonly damage: readonly Damage[]
  /** Number of its last event. */
  readonly lastSeq: number
  /** Number of the event with its prompt: `run_queued` or `run_started`. */
  readonly promptSeq: number
  /** Entries of the conversation that it continues; null: they are in another log. */
  readonly history: number | null
}

/** A reply that is arriving, as far as it was seen live. */
export interface OpenText {
  readonly text: string
  readonly reasoning: string
  /** Argument texts so far, by call id. */
  readonly inputs: Readonly<Record<string, string>>
}

export interface Pause {
  readonly from: number
  /** Null: it still waits. */
  readonly to: number | null
  /** `approval_required`, `input_required`, `left` (no process executed it), `failed` (before a retry), `queued`. */
  readonly reason: string
  /** Of the event before it. */
  readonly seq: number
}

/** A request to the model and its reply. */
export interface TurnNode {
  readonly runId: string
  /** From 1. */
  readonly index: number
  /** Of `model_request_started`; of the reply for a log that has no request. */
  readonly seq: number
  /** Of `model_message`; null: there is none. */
  readonly replySeq: number | null
  readonly requestKind: string
  readonly model: string
  readonly startedAt: number
  readonly repliedAt: number | null
  /** Only of a turn that was seen live. */
  readonly firstDeltaAt: number | null
  readonly text: string
  readonly hasReasoning: boolean
  readonly finishReason: string | null
  /** `continue`, `final`, `retry_user_message` …; null without a reply. */
  readonly resolution: string | null
  /** The reply came from a cache of replies. */
  readonly isCached: boolean
  /** Why a filter blocked it. */
  readonly blocked: string | null
  /** The last request of the run, without tools: the limit. */
  readonly closing: string | null
  readonly tokens: TurnTokens | null
  /** US dollars; null if unknown. */
  readonly costUsd: number | null
  /** Failed attempts before the answer. */
  readonly attempts: readonly AttemptMark[]
  readonly calls: readonly CallNode[]
  /** Entries that the harness added: corrections, steering, notices. */
  readonly entries: number
  /** Events that belong to it: retries, lost caches, warnings, views. */
  readonly marks: readonly Mark[]
}

export interface TurnTokens {
  /** All of the input. */
  readonly input: number
  readonly output: number
  /** Part of the input. */
  readonly cached: number
  readonly cacheWrite: number
  /** Part of the output. */
  readonly reasoning: number
}

export interface AttemptMark {
  readonly model: string
  readonly failure: string | null
  readonly status: number | null
  readonly ms: number
  /** Deltas of it were shown and taken back. */
  readonly withdrawn: boolean
}

export type CallState = 'requested' | 'waiting' | 'running' | 'completed' | 'failed' | 'cancelled' | 'rejected'

export interface CallNode {
  readonly runId: string
  readonly callId: string
  /** The turn that asked for it. */
  readonly turn: number
  readonly toolName: string
  /** The tool that the model called, if that call stands for this one. */
  readonly via: string | null
  /** The beginning of its arguments. */
  readonly argument: string
  /** Equal for calls of one tool with the same arguments. */
  readonly key: string
  readonly state: CallState
  readonly errorType: string | null
  /** The beginning of its result, or of its error. */
  readonly result: string
  readonly requestedAt: number
  readonly startedAt: number | null
  readonly endedAt: number | null
  /** As its last event says, without waits; null until it has ended. */
  readonly durationMs: number | null
  /** Times at which people were asked and had answered (null: they have not). */
  readonly waits: readonly Pause[]
  /** Numbers of its `tool_call_started`: of each time that it was begun. */
  readonly starts: readonly number[]
  /** `retry`, `report`, `pause`, `reconcile`: a crash interrupted it. */
  readonly interrupted: string | null
  /** Of its end. */
  readonly endSeq: number | null
  /** Runs that it left in the background. */
  readonly background: readonly BackgroundNode[]
  readonly marks: readonly Mark[]
}

export interface BackgroundNode {
  readonly runId: string
  readonly agent: string
  readonly task: string
  /** Where it reported; null: it has not. */
  readonly reportSeq: number | null
}

/** An event that is shown as one line. */
export interface Mark {
  readonly seq: number
  readonly at: number
  readonly kind: string
  /** One sentence or a few words. */
  readonly text: string
  readonly isProblem: boolean
}
