/** Does `work` every so often, never twice at the same time, and keeps no process alive. The result stops it. */
export function heartbeat(everyMs: number, work: () => Promise<void>): () => void {
  let last: Promise<void> | null = null
  const tick = () =>
    void (last ??= work()
      .catch(console.error)
      .finally(() => (last = null)))
  const timer = setInterval(tick, everyMs).unref()
  return () => clearInterval(timer)
}
