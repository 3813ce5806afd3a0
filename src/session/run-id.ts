import { createHash } from 'node:crypto'

/** The id of the run that a message begins: the same whenever it is begun again. */
export function runIdOf(threadId: string, messageId: string): string {
  const text = JSON.stringify([threadId, messageId])
  return `run_${createHash('sha256').update(text).digest('hex').slice(0, 32)}`
}
