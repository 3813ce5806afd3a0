/**
 * Does `work` for each item, `limit` of them at once, and requests the next item only when there is room. Stops at the first
 * error, which it throws after the work in progress has ended.
 */
export async function concurrently<Item>(
  items: AsyncIterable<Item>,
  limit: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const iterator = items[Symbol.asyncIterator]()
  let isStopped = false
  const worker = async (): Promise<void> => {
    try {
      while (!isStopped) {
        const next = await iterator.next()
        if (next.done === true) return
        await work(next.value)
      }
    } catch (error) {
      isStopped = true
      throw error
    }
  }
  const ends = await Promise.allSettled(Array.from({ length: limit }, worker))
  await iterator.return?.()
  const failed = ends.find((end) => end.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}
