import { listenToAbort } from './abort.js'

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
