/** Who listens to a caller's signal: the platform warns of more than ten listeners on one, and many runs may share it. */
const shared = new WeakMap<AbortSignal, SharedListener>()

/** Calls `listener` when `signal` is aborted; returns how to stop listening. */
export function listenToAbort(signal: AbortSignal, listener: () => void): () => void {
  const { listeners, tell } = shared.get(signal) ?? share(signal)
  listeners.add(listener)
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    signal.removeEventListener('abort', tell)
    shared.delete(signal)
  }
}

interface SharedListener {
  readonly listeners: Set<() => void>
  readonly tell: () => void
}

function share(signal: AbortSignal): SharedListener {
  const listeners = new Set<() => void>()
  const tell = (): void => {
    // A listener that another one has stopped is not called any more, as the platform has it.
    for (const listener of [...listeners]) if (listeners.has(listener)) listener()
  }
  signal.addEventListener('abort', tell)
  shared.set(signal, { listeners, tell })
  return { listeners, tell }
}
