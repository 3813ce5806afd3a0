/** Waits before another attempt: at once, then 1, 2, 4 … 30 s, each up to a quarter shorter. */
export function backoffMs(attempt: number, random: () => number = Math.random): number {
  if (attempt === 0) return 0
  const ms = Math.min(30_000, 1_000 * 2 ** (attempt - 1))
  return Math.round(ms * (1 - random() / 4))
}

/** Resolves after `ms`, or when the page becomes visible or comes online, or at the signal. */
export async function waitFor(ms: number, signal?: AbortSignal): Promise<void> {
  if (ms === 0 || signal?.aborted === true) return
  const page = globalThis as Partial<EventTarget> & { readonly document?: EventTarget & { visibilityState?: string } }
  await new Promise<void>((resolve) => {
    const isVisible = (): void => {
      if (page.document?.visibilityState === 'visible') endWait()
    }
    const timer = setTimeout(endWait, ms)
    function endWait(): void {
      clearTimeout(timer)
      page.document?.removeEventListener('visibilitychange', isVisible)
      page.removeEventListener?.('online', endWait)
      signal?.removeEventListener('abort', endWait)
      resolve()
    }
    page.document?.addEventListener('visibilitychange', isVisible)
    page.addEventListener?.('online', endWait)
    signal?.addEventListener('abort', endWait)
  })
}
