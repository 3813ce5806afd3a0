import type { LogStore } from 'thinharness'
import { copyLogs } from 'thinharness/session'

/** Copies everything once the processes that write to `from` have ended. Start the new ones with `to`. */
export async function moveLogs(from: LogStore, to: LogStore): Promise<void> {
  const { copied, left } = await copyLogs(from, to)
  console.log(`${copied} logs were copied.`)
  for (const { kind, id } of left) console.warn(`Not copied: ${kind} ${id}`)
}
