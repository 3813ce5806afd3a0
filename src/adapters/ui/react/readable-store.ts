/**
 * A value that changes, as React's `useSyncExternalStore` and the bindings of other frameworks read it. `getSnapshot` returns the same
 * object for as long as nothing has changed. The functions need no `this`.
 */
export interface ReadableStore<State> {
  /** Calls `listener` after each change, until the returned function is called. */
  readonly subscribe: (listener: () => void) => () => void
  readonly getSnapshot: () => State
  /** The value before anything was read, for rendering on a server and for hydration. */
  readonly getServerSnapshot: () => State
}

/** True if two values are the same, or are lists or plain objects with the same members. */
export function sameMembers(left: unknown, right: unknown): boolean {
  if (Object.is(left, right)) return true
  const [before, after] = [plainMembers(left), plainMembers(right)]
  if (before === null || after === null || Array.isArray(left) !== Array.isArray(right)) return false
  const names = Object.keys(before)
  return (
    names.length === Object.keys(after).length &&
    names.every((name) => name in after && Object.is(before[name], after[name]))
  )
}

/** Null for what has more than its members, such as an error. */
function plainMembers(value: unknown): Readonly<Record<string, unknown>> | null {
  if (typeof value !== 'object' || value === null) return null
  const prototype: unknown = Object.getPrototypeOf(value)
  const isPlain = prototype === Object.prototype || prototype === Array.prototype || prototype === null
  return isPlain ? (value as Readonly<Record<string, unknown>>) : null
}

/** Calls `work` in the next frame of the page, or after `ms`; in a hidden page and without one, soon. Returns how to cancel it. */
export function nextFrame(work: () => void, ms: number | undefined): () => void {
  const page = globalThis as {
    readonly requestAnimationFrame?: (work: () => void) => number
    readonly cancelAnimationFrame?: (frame: number) => void
  }
  // A hidden page has no frames, and is told all the same.
  const timer = setTimeout(once, ms ?? (page.requestAnimationFrame === undefined ? 0 : HIDDEN_MS))
  const frame = ms === undefined ? page.requestAnimationFrame?.(once) : undefined
  return cancel

  function once(): void {
    cancel()
    work()
  }

  function cancel(): void {
    clearTimeout(timer)
    if (frame !== undefined) page.cancelAnimationFrame?.(frame)
  }
}

/** How long a hidden page is not told, in ms. */
const HIDDEN_MS = 250
