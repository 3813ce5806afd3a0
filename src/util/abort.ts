import { nodeModule } from './platform/node.js'

/** How long a tool may take to clean up after its signal was aborted, before the run continues without it, in ms. */
const GRACE_MS = 250

/** How long tool calls in progress may take when their run is left, in ms. */
export const LEAVE_GRACE_MS = 10_000

/** How a run is left: it stops without an end, so that it can be continued later. */
export interface Leave {
  /** The reason of the abort. */
  readonly reason: Error
  /** How long the work that holds the run may take, in ms. */
  readonly graceMs: number
}

/** Called when a run is to be left. The run waits for the work that it returns, as long as `graceMs` allows. */
type OnLeave = (leave: Leave) => Promise<unknown> | undefined

/** The abort of one run: one listener on the caller's signal, however many calls and runs are in progress. */
export class RunAbort {
  readonly #controller = new AbortController()
  readonly signal: AbortSignal = this.#controller.signal
  readonly #listeners = new Set<() => void>()
  readonly #leaveListeners = new Set<OnLeave>()
  readonly #letGo: (() => void)[] = []
  /** As `signal.aborted`, which takes longer: signals are objects of many forms. */
  isAborted = false
  /** True if the run is to be left: nothing new begins. */
  isLeaving = false
  /** The caller aborted it, not the run itself. */
  byCaller = false
  #leave: Leave | null = null
  #leaveTimer: NodeJS.Timeout | undefined

  /** A child run is left together with its `parent`. */
  constructor(outer: AbortSignal | undefined, parent: RunAbort | null = null) {
    // All calls of a batch may listen, each more than once: this is not a leak, but the platform would warn about one.
    nodeModule('node:events')?.setMaxListeners(0, this.signal)
    if (parent !== null) {
      const follow: OnLeave = (leave) => {
        this.leave(leave)
      }
      this.#letGo.push(parent.onLeave(follow))
    }
    if (outer?.aborted === true) this.#stop(outer.reason)
    else if (outer !== undefined) this.#letGo.push(listenToAbort(outer, () => this.#stop(outer.reason)))
  }

  /** The caller's signal cancels the run, or leaves it if its reason says so. */
  #stop(reason: unknown): void {
    if (reason instanceof Error && 'code' in reason && reason.code === 'interrupted')
      this.leave({ reason, graceMs: LEAVE_GRACE_MS })
    else this.cancel(reason)
  }

  /** True if the run was left: it is aborted, and must not end. */
  get isLeft(): boolean {
    return this.#leave !== null && this.signal.reason === this.#leave.reason
  }

  /** The caller wants the run to end. A run that is being left is not cancelled any more, but left at once. */
  cancel(reason: unknown): void {
    if (this.#leave !== null) return this.abort(this.#leave.reason)
    this.byCaller ||= !this.isAborted
    this.abort(reason)
  }

  /** Aborts the run with `reason`. */
  abort(reason: unknown): void {
    if (this.isAborted) return
    this.isAborted = true
    clearTimeout(this.#leaveTimer)
    this.#controller.abort(reason)
    for (const listener of [...this.#listeners]) listener()
  }

  /** Leaves the run, and its child runs, as soon as work that may end has ended. */
  leave(leave: Leave): void {
    if (this.isAborted || this.isLeaving) return
    this.#leave = leave
    this.isLeaving = true
    const abortRun = (): void => this.abort(leave.reason)
    const working = [...this.#leaveListeners].flatMap((listener) => listener(leave) ?? [])
    if (working.length === 0) {
      abortRun()
      return
    }
    this.#leaveTimer = setTimeout(abortRun, leave.graceMs)
    void Promise.allSettled(working).then(abortRun)
  }

  /** Calls `listener` when the run is aborted; returns how to stop listening. */
  onAbort(listener: () => void): () => void {
    if (this.isAborted) listener()
    else this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Resolves when the run is aborted. */
  aborted(): Promise<void> {
    return new Promise((resolve) => void this.onAbort(resolve))
  }

  /** Calls `listener` when the run is to be left; returns how to stop listening. */
  onLeave(listener: OnLeave): () => void {
    if (this.#leave !== null) void listener(this.#leave)
    else this.#leaveListeners.add(listener)
    return () => this.#leaveListeners.delete(listener)
  }

  /** The run is over: lets go of the caller's signal. */
  release(): void {
    clearTimeout(this.#leaveTimer)
    for (const letGo of this.#letGo) letGo()
    this.#listeners.clear()
    this.#leaveListeners.clear()
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

/** Waits for work that is in progress, as `settle` does. Work that is aborted with the run has its signal. */
export function untilStopped<T>(
  working: Promise<T>,
  abort: RunAbort,
  timeout: Timeout | null = null,
): Promise<Settled<T>> {
  return new Promise((resolve) => {
    let stopped: Settled<T>['stopped'] = null
    let timer: NodeJS.Timeout | undefined
    const resolveWith = (value: T | undefined): void => {
      clearTimeout(timer)
      stopListening()
      resolve({ stopped, value })
    }
    const stopWork = (why: 'aborted' | 'timed_out', reason: unknown): void => {
      stopped ??= why
      timeout?.own.abort(reason)
      clearTimeout(timer)
      timer = setTimeout(() => resolveWith(undefined), GRACE_MS)
    }
    if (timeout !== null) {
      const { timeoutMs } = timeout
      timer = setTimeout(
        () => stopWork('timed_out', new Error(`The time for this call is up: ${timeoutMs} ms.`)),
        timeoutMs,
      )
    }
    const stopListening = abort.onAbort(() => stopWork('aborted', abort.signal.reason))
    working.then(resolveWith, () => {
      resolve(working as Promise<never>)
      resolveWith(undefined)
    })
  })
}

/**
 * Waits for `working`, which cannot be stopped: when the run has been aborted for `graceMs`, rejects with `late`, and
 * `working` is left alone.
 */
export function inGrace<T>(
  working: Promise<T>,
  abort: RunAbort,
  { graceMs, late }: { readonly graceMs: number; readonly late: () => Error },
): Promise<T> {
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined
    const stopListening = abort.onAbort(() => (timer = setTimeout(() => reject(late()), graceMs)))
    const stopWaiting = (): void => {
      clearTimeout(timer)
      stopListening()
    }
    working.then(
      (value) => {
        stopWaiting()
        resolve(value)
      },
      () => {
        stopWaiting()
        resolve(working)
      },
    )
  })
}

/** Waits for shared work until `signal` is aborted; the work itself continues. */
export async function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted()
  let rejectAborted = (): void => undefined
  const aborted = new Promise<never>((_, reject) => {
    rejectAborted = () => reject(signal.reason as Error)
    signal.addEventListener('abort', rejectAborted)
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', rejectAborted)
  }
}

export function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true
}

/** Calls `listener` when `signal` is aborted, at once if it already is; returns how to stop listening. */
export function onAbort(signal: AbortSignal | undefined, listener: () => void): () => void {
  if (signal === undefined) return () => undefined
  if (signal.aborted) listener()
  return listenToAbort(signal, listener)
}

/** Listeners of a caller's signal: the platform warns about more than ten on one signal, and many runs may share it. */
const shared = new WeakMap<AbortSignal, SharedListener>()

/** Calls `listener` when `signal` is aborted; returns how to stop listening. */
export function listenToAbort(signal: AbortSignal, listener: () => void): () => void {
  const { listeners, notify } = shared.get(signal) ?? shareListener(signal)
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

function shareListener(signal: AbortSignal): SharedListener {
  const listeners = new Set<() => void>()
  const notify = (): void => {
    // A listener that another one has stopped is not called any more, as the platform has it.
    for (const listener of [...listeners]) if (listeners.has(listener)) listener()
  }
  signal.addEventListener('abort', notify)
  shared.set(signal, { listeners, notify })
  return { listeners, notify }
}
