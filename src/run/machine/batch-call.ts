import type { PendingItem, ResumeState } from '../../contracts/result.js'
import type { Answer, Verdict } from './answers.js'
import type { SettledCall } from './settled.js'

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
  answers: readonly Answer[]
  /** What a person said about an outcome that is not known. */
  verdict: Verdict | null
  /** Runs that it started, as they were when it had to wait: those that wait, and those that had ended. */
  children: readonly ResumeState[]
  settled: SettledCall | null
}
