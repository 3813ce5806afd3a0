import type { LogStore } from 'thinharness'

/** An append at which a process kills itself, counted from 1. */
export interface Kill {
  readonly at: number
  /** `close`: it gets SIGTERM, closes its harness and leaves the run. */
  readonly when: 'before' | 'after' | 'close'
}

/** Makes the process kill itself at an append to `store`; returns the appends so far. */
export function killAtAppend(store: LogStore, kill: Kill | undefined): { readonly count: number } {
  const appends = { count: 0 }
  const append = store.append.bind(store)
  store.append = async (ref, events, options) => {
    appends.count += 1
    const due = appends.count === kill?.at ? kill.when : null
    if (due === 'before') await die()
    if (due === 'close') process.kill(process.pid, 'SIGTERM')
    await append(ref, events, options)
    if (due === 'after') await die()
  }
  return appends
}

/** Never resolves: the signal ends the process. */
function die(): Promise<never> {
  process.kill(process.pid, 'SIGKILL')
  return new Promise(() => undefined)
}
