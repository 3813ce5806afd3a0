import { createHash } from 'node:crypto'

const ACCEPTED = /^[a-zA-Z0-9_-]+$/
const LONGEST_TOOL_NAME = 128

/** `callId` as the API accepts it: unchanged where it is, else a digest of it, so that a call and its result agree. */
export function toolUseId(callId: string): string {
  if (ACCEPTED.test(callId)) return callId
  return `call_${createHash('sha256').update(callId).digest('hex').slice(0, 32)}`
}

/** The name of a call that was made, as the API accepts it: a model may have called what never was a tool. */
export function calledName(name: string): string {
  const accepted = name.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, LONGEST_TOOL_NAME)
  return accepted === '' ? 'unnamed' : accepted
}
