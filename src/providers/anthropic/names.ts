import { createHash } from 'node:crypto'

const ACCEPTED = /^[a-zA-Z0-9_-]+$/

/** `callId` as the API accepts it: unchanged where it is, else a digest of it, so that a call and its result agree. */
export function toolUseId(callId: string): string {
  if (ACCEPTED.test(callId)) return callId
  return `call_${createHash('sha256').update(callId).digest('hex').slice(0, 32)}`
}
