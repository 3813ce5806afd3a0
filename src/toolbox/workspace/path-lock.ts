const held = new Map<string, Promise<unknown>>()

/** Work on one path at a time in this process: of two runs that edit a file at once, the second sees what the first wrote. */
export async function withPathLock<T>(path: string, work: () => Promise<T>): Promise<T> {
  const before = held.get(path) ?? Promise.resolve()
  const mine = before.then(work, work)
  held.set(path, mine)
  try {
    return await mine
  } finally {
    if (held.get(path) === mine) held.delete(path)
  }
}
