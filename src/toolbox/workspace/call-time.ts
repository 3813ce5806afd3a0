import { setImmediate } from 'node:timers/promises'
import { DeadlinePassed } from './failure.js'

/** The time of one call, all its parts together. */
export interface CallTime {
  readonly signal: AbortSignal
  /** When it ends, in ms since 1970. */
  readonly deadline: number
  readonly seconds: number
  /** @throws DeadlinePassed; the signal's reason when aborted. */
  readonly check: () => void
  /** Lets others have their turn when this call has held the event loop for a while, then checks. */
  breathe(): Promise<void>
}

/** How long a call may compute before it lets others go on, in ms. */
const HOLD_MS = 20

export function callTime(seconds: number, signal: AbortSignal): CallTime {
  const deadline = Date.now() + seconds * 1000
  const giveWay = givingWay()
  const check = (): void => {
    signal.throwIfAborted()
    if (Date.now() > deadline) throw new DeadlinePassed()
  }
  return {
    signal,
    deadline,
    seconds,
    check,
    async breathe() {
      await giveWay()
      check()
    },
  }
}

/** A function that lets others have their turn when the event loop has been held for a while since it last did. */
export function givingWay(): () => Promise<void> {
  let heldSince = Date.now()
  return async () => {
    if (Date.now() - heldSince <= HOLD_MS) return
    await setImmediate()
    heldSince = Date.now()
  }
}
