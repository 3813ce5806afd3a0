import { createHash } from 'node:crypto'
import type { ChatDialect } from './dialect.js'

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

/**
 * A call id as the server takes it: unchanged where it is, else a digest of it, so that a call and its result agree. A
 * server that takes any takes its own back; behind a gateway may be one that wants those of others short.
 */
export function wireCallId(callId: string, rule: ChatDialect['callIds'], isOwn: boolean): string {
  switch (rule) {
    case 'any':
      return isOwn ? callId : wireCallId(callId, 'up_to_40', isOwn)
    case 'up_to_40':
      return callId.length <= 40 ? callId : `call_${digest(callId).toString('hex').slice(0, 32)}`
    case 'nine_alphanumeric':
      return /^[a-zA-Z0-9]{9}$/.test(callId) ? callId : alphanumeric(digest(callId).subarray(0, 9))
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

function alphanumeric(bytes: Buffer): string {
  return Array.from(bytes, (byte) => ALPHABET[byte % ALPHABET.length]).join('')
}
