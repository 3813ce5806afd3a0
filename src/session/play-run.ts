import { createHash } from 'node:crypto'
import { HarnessError } from '../index.js'
import type { HarnessStream, StreamEvent } from '../index.js'
import type { MessageOutcome } from './message-ends.js'
import type { SteeringPort } from './steering-port.js'
import type { ReplacedRuns } from './thread/thread-events.js'
import type { ThreadRun, ThreadState } from './thread/thread-state.js'
import type { PlanOutcome } from './tools/submit-plan.js'

/** A run in progress in this process. */
export interface OpenRun {
  readonly run: ThreadRun
  readonly port: SteeringPort
  readonly abort: AbortController
  /** Resolves when its first event is stored, or it has ended. */
  readonly started: Promise<void>
  /** Resolves when the thread has dealt with its end; never rejects. */
  readonly over: Promise<void>
  /** The queue continues although the run was cancelled. */
  continues: boolean
  /** The answer to a plan stopped it. */
  plan: PlanOutcome | null
}

/** How a stretch of a run ended. */
export interface RunOutcome {
  readonly end: MessageOutcome
  readonly error?: Error | undefined
}

/** Reads a run to its pause or end, whatever its readers do. Does not reject. `text`: that of its last reply. */
export async function playRun(
  start: () => Promise<HarnessStream<unknown>>,
  { onEvent, text }: { readonly onEvent: (event: StreamEvent) => void; readonly text: () => string },
): Promise<RunOutcome> {
  try {
    const stream = await start()
    const read = async (): Promise<void> => {
      for await (const events of stream.batches()) for (const event of events) onEvent(event)
    }
    // The result rejects with the same error.
    await read().catch(() => undefined)
    const result = await stream.result
    return { end: { status: result.status, text: result.text, result, runId: stream.runId } }
  } catch (thrown) {
    const error = thrown instanceof Error ? thrown : new Error(String(thrown))
    return { end: { status: statusOf(thrown), text: text(), runId: null, error }, error }
  }
}

/** Another process has claimed the run. */
export function isElsewhere(error: unknown): boolean {
  return error instanceof HarnessError && (error.code === 'run_owned' || error.code === 'run_exists')
}

function statusOf(thrown: unknown): MessageOutcome['status'] {
  if (!(thrown instanceof HarnessError)) return 'failed'
  if (thrown.code === 'interrupted') return 'left'
  return thrown.code === 'cancelled' ? 'cancelled' : 'failed'
}

export function newId(prefix: string): string {
  return `${prefix}_${globalThis.crypto.randomUUID().replaceAll('-', '')}`
}

/** The id of the run that a message begins: the same whenever it is begun again, unless that run has left the conversation. */
export function runIdOf(
  { threadId, replaced }: Pick<ThreadState, 'threadId' | 'replaced'>,
  messageId: string,
  leaving?: ReplacedRuns,
): string {
  const idOf = (...parts: readonly string[]): string =>
    `run_${createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32)}`
  let runId = idOf(threadId, messageId)
  while (replaced.includes(runId) || leaving?.runIds.includes(runId) === true) runId = idOf(threadId, messageId, runId)
  return runId
}
