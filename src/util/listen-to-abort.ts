/** Listeners of a caller's signal: the platform warns about more than ten on one signal, and many runs may share it. */
const shared = new WeakMap<AbortSignal, SharedListener>()

/** Calls `listener` when `signal` is aborted; returns how to stop listening. */
export function listenToAbort(signal: AbortSignal, listener: () => void): () => void {
  const { listeners, notify } = shared.get(signal) ?? share(signal)
  listeners.add(listener)
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    signal.removeEventListener('abort', notify)
    shared.delete(signal)
  }
}

interface SharedListener {
  readonly listeners: Set<() => void>
  readonly notify: () => void
}

function share(signal: AbortSignal): SharedListener {
  const listeners = new Set<() => void>()
  const notify = (): void => {
    // A listener that another one has stopped is not called any more, as the platform has it.
    for (const listener of [...listeners]) if (listeners.has(listener)) listener()
  }
  signal.addEventListener('abort', notify)
  shared.set(signal, { listeners, notify })
  return { listeners, notify }
}
