import { setTimeout as sleep } from 'node:timers/promises'
import type { LogStore } from 'thinharness'
import type { Interruption, Kill } from './report.js'

/** The end of a process at an append. */
const ENDS: Readonly<Record<Kill['when'], NodeJS.Signals>> = { before: 'SIGKILL', after: 'SIGKILL', close: 'SIGTERM' }

/**
 * Counts the appends to `store`. At one of them, the process ends itself or `onStop` is called; an append takes at least twice
 * `appendMs`.
 */
export function watchAppends(
  store: LogStore,
  { kill, stop, appendMs = 0 }: Interruption,
  onStop: () => void,
): { readonly count: number } {
  const appends = { count: 0 }
  const append = store.append.bind(store)
  store.append = async (ref, events, options) => {
    appends.count += 1
    if (appends.count === stop?.at) onStop()
    const due = appends.count === kill?.at ? kill.when : null
    if (due === 'before' || due === 'close') await end(due)
    if (appendMs > 0) await sleep(appendMs)
    await append(ref, events, options)
    if (appendMs > 0) await sleep(appendMs)
    if (due === 'after') await end(due)
  }
  return appends
}

/** Never resolves for a signal that ends the process at once. */
function end(when: Kill['when']): Promise<void> {
  process.kill(process.pid, ENDS[when])
  return when === 'close' ? Promise.resolve() : new Promise(() => undefined)
}
