import { setImmediate } from 'node:timers/promises'
import type { JsonObject } from '#util/json.js'
import { DeadlinePassed, FileFailure } from './file-failure.js'
import type { FileCall } from './file-tool.js'

/** The time limit of one call, for all its parts together. */
export interface CallTime {
  readonly signal: AbortSignal
  /** In ms since 1970. */
  readonly deadline: number
  /** @throws DeadlinePassed; the signal's reason when aborted. */
  readonly check: () => void
  /** Yields to the event loop if this call has blocked it for a while, then checks. */
  breathe(): Promise<void>
}

interface TimeLimit {
  /** Names the search in the message. */
  readonly label: string
  /** Completes 'timed out after 30s: …'. */
  readonly advice: string
  /** Default: `searchTimeoutMs` of the workspace. */
  readonly seconds?: number | undefined
  /** Added to that of the failure. */
  readonly metadata?: JsonObject
}

/**
 * Runs a search within its time limit.
 * @throws FileFailure `Timeout`; the signal's reason when aborted.
 */
export async function withinTime<T>(
  { workspace, context }: FileCall<unknown>,
  { label, advice, seconds = workspace.limits.searchTimeoutMs / 1000, metadata }: TimeLimit,
  search: (time: CallTime) => Promise<T>,
): Promise<T> {
  try {
    return await search(callTime(seconds, context.signal))
  } catch (error) {
    if (!(error instanceof DeadlinePassed)) throw error
    const problem = `${label} timed out after ${seconds}s: ${advice}`
    throw new FileFailure('Timeout', problem, { metadata: { timeout: seconds, ...metadata } })
  }
}

export function callTime(seconds: number, signal: AbortSignal): CallTime {
  const deadline = Date.now() + seconds * 1000
  const giveWay = eventLoopYield()
  const checkTime = (): void => {
    signal.throwIfAborted()
    if (Date.now() > deadline) throw new DeadlinePassed()
  }
  return {
    signal,
    deadline,
    check: checkTime,
    async breathe() {
      await giveWay()
      checkTime()
    },
  }
}

/** Longest time that a call may block the event loop, in ms. */
const BLOCK_MS = 20

/** A function that yields to the event loop if it has been blocked for a while since the last time. */
export function eventLoopYield(): () => Promise<void> {
  let blockedSince = Date.now()
  return async () => {
    if (Date.now() - blockedSince <= BLOCK_MS) return
    await setImmediate()
    blockedSince = Date.now()
  }
}
