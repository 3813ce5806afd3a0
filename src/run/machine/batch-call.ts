import type { PendingItem } from '../../contracts/result.js'
import type { KeptAnswer, Verdict } from './answers.js'
import type { StoredChild } from './child-state.js'
import type { SettledCall } from './settled.js'

/** The answers of the hooks before a call. */
export interface PreparedCall {
  /** Raw JSON text in place of the model's arguments. */
  readonly arguments?: string
  /** Why the call is not run. */
  readonly cancelled?: string
}

/** One tool call of a batch, and how far it has come. */
export interface BatchCall {
  readonly callId: string
  readonly name: string
  readonly arguments: string
  /** Somebody began to perform it; unset when it may be begun anew. */
  started: boolean
  /** How often it was begun, with answers or anew. */
  entries: number
  /** What people have to answer before it can go on: what it asks itself, and what runs that it started ask. */
  waiting: readonly PendingItem[]
  /** What they have answered, also while it is performed with that. */
  answers: readonly KeptAnswer[]
  /** What a person said about an outcome that is not known. */
  verdict: Verdict | null
  /** Runs that it started, as they were when it had to wait: those that wait, and those that had ended. */
  children: readonly StoredChild[]
  settled: SettledCall | null
  /** The answers of the `before_tool_call` hooks; absent until they have been asked. */
  prepared?: PreparedCall
  /** Calls of the batch that wait until this one has ended. */
  holds?: readonly string[]
}
