import { setMaxListeners } from 'node:events'

/** How long a tool may take to clean up after its signal was aborted, before the run continues without it, in ms. */
const GRACE_MS = 250

/** The abort of one run: one listener on the caller's signal, however many calls and runs are under way. */
export class RunAbort {
  readonly #controller = new AbortController()
  readonly signal: AbortSignal = this.#controller.signal
  readonly #listeners = new Set<() => void>()
  readonly #letGo: (() => void) | undefined
  #byCaller = false

  constructor(outer: AbortSignal | undefined) {
    // All calls of a batch may listen, each more than once: this is not a leak, but the platform would warn about one.
    setMaxListeners(0, this.signal)
    if (outer?.aborted === true) this.cancel(outer.reason)
    else if (outer !== undefined) this.#letGo = listenToAbort(outer, () => this.cancel(outer.reason))
  }

  /** True if the caller aborted it, not the run itself. */
  get byCaller(): boolean {
    return this.#byCaller
  }

  /** The caller wants the run to end. */
  cancel(reason: unknown): void {
    this.#byCaller ||= !this.signal.aborted
    this.abort(reason)
  }

  /** Aborts the run with `reason`. */
  abort(reason: unknown): void {
    if (this.signal.aborted) return
    this.#controller.abort(reason)
    for (const listener of [...this.#listeners]) listener()
  }

  /** Calls `listener` when the run is aborted; returns how to stop listening. */
  onAbort(listener: () => void): () => void {
    if (this.signal.aborted) listener()
    else this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** The run is over: lets go of the caller's signal. */
  release(): void {
    this.#letGo?.()
    this.#listeners.clear()
  }
}

/** How work that may be stopped ended. */
export interface Settled<T> {
  /** Why it was stopped; null if it was not. */
  readonly stopped: 'aborted' | 'timed_out' | null
  /** The result; undefined if it had not ended within the grace period. */
  readonly value: T | undefined
}

/**
 * Runs `work` with a signal that is aborted with the run, or when `timeoutMs` is over. Work that is stopped gets a moment
 * to clean up; work that ignores its signal is abandoned.
 */
export async function settle<T>(
  work: (signal: AbortSignal) => Promise<T>,
  { abort, timeoutMs }: { readonly abort: RunAbort; readonly timeoutMs: number | undefined },
): Promise<Settled<T>> {
  if (timeoutMs === undefined) return untilStopped(work(abort.signal), abort)
  const own = new AbortController()
  return untilStopped(work(own.signal), abort, { timeoutMs, own })
}

interface Timeout {
  readonly timeoutMs: number
  /** Aborts the work alone. */
  readonly own: AbortController
}

/** Waits for work that is under way, as `settle` does. Work that is aborted with the run has its signal. */
export function untilStopped<T>(
  working: Promise<T>,
  abort: RunAbort,
  timeout: Timeout | null = null,
): Promise<Settled<T>> {
  return new Promise((resolve) => {
    let stopped: Settled<T>['stopped'] = null
    let timer: NodeJS.Timeout | undefined
    const finish = (value: T | undefined): void => {
      clearTimeout(timer)
      stopListening()
      resolve({ stopped, value })
    }
    const stop = (why: 'aborted' | 'timed_out', reason: unknown): void => {
      stopped ??= why
      timeout?.own.abort(reason)
      clearTimeout(timer)
      timer = setTimeout(() => finish(undefined), GRACE_MS)
    }
    if (timeout !== null) {
      const { timeoutMs } = timeout
      timer = setTimeout(
        () => stop('timed_out', new Error(`The time for this call is up: ${timeoutMs} ms.`)),
        timeoutMs,
      )
    }
    const stopListening = abort.onAbort(() => stop('aborted', abort.signal.reason))
    working.then(finish, () => {
      resolve(working as Promise<never>)
      finish(undefined)
    })
  })
}

/** Waits for shared work until `signal` is aborted; the work itself continues. */
export async function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted()
  let stop = (): void => undefined
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason as Error)
    signal.addEventListener('abort', stop)
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

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
