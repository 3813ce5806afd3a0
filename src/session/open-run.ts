import { createHash } from 'node:crypto'
import { HarnessError } from '../index.js'
import type { Answer, IdentifiedMessage, InputMessage, InputPort } from '../index.js'
import type { MessageOutcome } from './message.js'
import type { QueueItem, ReplacedRuns } from './thread/thread-events.js'
import type { ThreadRun, ThreadState } from './thread/thread-state.js'
import type { PlanOutcome } from './tools/submit-plan.js'

/** How a run begins or continues. */
export type RunStart = 'begin' | 'recover' | { readonly answers: readonly Answer[] }

/** How a stretch of a run ended. */
export interface RunOutcome {
  readonly end: MessageOutcome
  readonly error?: Error | undefined
}

const ignore = (): void => undefined

/** A run in progress in this process. */
export class OpenRun {
  readonly run: ThreadRun
  readonly port = new SteeringPort()
  readonly abort = new AbortController()
  /** Resolves when its first event is stored, or it has ended. */
  readonly started: Promise<void>
  /** Resolves when it has paused or ended, with the error of one that failed. */
  readonly ended: Promise<Error | undefined>
  /** Resolves when the thread has dealt with its end; never rejects. */
  readonly over: Promise<void>
  /** The queue continues although the run was cancelled. */
  continues = false
  /** The answer to a plan stopped it. */
  plan: PlanOutcome | null = null
  markStarted: () => void = ignore
  markEnded: (error: Error | undefined) => void = ignore
  markOver: () => void = ignore

  constructor(run: ThreadRun) {
    this.run = run
    this.started = new Promise((resolve) => (this.markStarted = resolve))
    this.ended = new Promise((resolve) => (this.markEnded = resolve))
    this.over = new Promise((resolve) => (this.markOver = resolve))
  }
}

/** The messages for a run in progress. Their entries carry the ids of the messages. */
class SteeringPort implements InputPort {
  #waiting: QueueItem[] = []
  readonly #listeners = new Set<() => void>()

  push(item: QueueItem): void {
    this.#waiting.push(item)
    for (const listener of this.#listeners) listener()
  }

  get waiting(): number {
    return this.#waiting.length
  }

  take(): readonly IdentifiedMessage[] {
    const taken = this.#waiting
    this.#waiting = []
    return taken.map(({ messageId, content }) => ({ messageId, content }))
  }

  onSend(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  send(): never {
    throw new TypeError('A message to a run of a thread goes through `chat.steer`.')
  }

  close(): readonly InputMessage[] {
    return []
  }
}

/** The outcome of a run that rejected; `text`: that of its last reply. */
export function failedOutcome(thrown: unknown, { runId }: ThreadRun, text: string): RunOutcome {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown))
  const code = thrown instanceof HarnessError ? thrown.code : null
  const status = code === 'interrupted' ? 'left' : code === 'cancelled' ? 'cancelled' : 'failed'
  return { end: { status, text, runId, error }, error }
}

/** Another process has claimed the run. */
export function isElsewhere(error: unknown): boolean {
  return error instanceof HarnessError && (error.code === 'run_owned' || error.code === 'run_exists')
}

/** The id of the run that a message begins: the same whenever it is begun again, unless that run has left the conversation. */
export function runIdOf({ threadId, replaced }: ThreadState, messageId: string, leaving?: ReplacedRuns): string {
  const idOf = (...parts: readonly string[]): string =>
    `run_${createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32)}`
  let runId = idOf(threadId, messageId)
  while (replaced.includes(runId) || leaving?.runIds.includes(runId) === true) runId = idOf(threadId, messageId, runId)
  return runId
}
