import { createHash } from 'node:crypto'
import type { ProviderTraits } from './traits.js'

/** The ids that most APIs take. */
const COMMON_IDS = /^[\x21-\x7e]{1,64}$/

/** `callId` as the provider takes it: unchanged where it is, else a digest of it, so that a call and its result agree. */
export function promptCallId(callId: string, { callIds = COMMON_IDS }: ProviderTraits): string {
  if (callIds.test(callId)) return callId
  return `call_${createHash('sha256').update(callId).digest('hex').slice(0, 32)}`
}
