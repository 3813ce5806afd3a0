import type { DurableEvent, LogStore, RunLog } from 'thinharness'

/** All items, in order. */
export async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const collected: Item[] = []
  for await (const item of items) collected.push(item)
  return collected
}

/** The events of a run after the event number `after`. */
export function eventsOfRun(log: RunLog | LogStore, runId: string, after = 0): Promise<DurableEvent[]> {
  return collect<DurableEvent>(log.read({ kind: 'run', id: runId }, { after }))
}
