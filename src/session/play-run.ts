import { createHash } from 'node:crypto'
import { HarnessError } from '../index.js'
import type { HarnessStream, StreamEvent } from '../index.js'
import type { MessageOutcome } from './message-ends.js'

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

function statusOf(thrown: unknown): MessageOutcome['status'] {
  if (!(thrown instanceof HarnessError)) return 'failed'
  if (thrown.code === 'interrupted') return 'left'
  return thrown.code === 'cancelled' ? 'cancelled' : 'failed'
}

export function newId(prefix: string): string {
  return `${prefix}_${globalThis.crypto.randomUUID().replaceAll('-', '')}`
}

/** The id of the run that a message begins: the same whenever it is begun again. */
export function runIdOf(threadId: string, messageId: string): string {
  const text = JSON.stringify([threadId, messageId])
  return `run_${createHash('sha256').update(text).digest('hex').slice(0, 32)}`
}
