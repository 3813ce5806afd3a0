import { listenToAbort } from './abort.js'

/** The longest time that a timer of the platform can wait, in ms: 24.8 days. */
export const LONGEST_TIMER_MS = 2_147_483_647

/** Rejects with a plain error when `work` takes longer than `ms`. The work itself is not stopped. */
export async function withTimeout<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`It took longer than ${ms} ms.`))
    }, ms)
  })
  try {
    return await Promise.race([work, timeout])
  } finally {
    clearTimeout(timer)
  }
}

/** Resolves after so many ms; rejects with the reason of `signal` as soon as that is aborted. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      stopListening()
      resolve()
    }, ms)
    const stopListening = listenToAbort(signal, () => {
      stopListening()
      clearTimeout(timer)
      reject(signal.reason as Error)
    })
  })
}
