import type * as Crypto from 'node:crypto'
import { HarnessError } from '#contracts/errors.js'
import type { ResumeState } from '#contracts/result.js'
import { canonicalJson } from '#util/json.js'
import { moduleOrStub } from '#util/platform/node.js'

/** The key that states are signed with. The host keeps it secret from everyone who carries a state. At least 16 bytes. */
export type SigningKey = string | Uint8Array

/** The state with an HMAC-SHA256 over all of it, independent of the order of its keys. */
export function signed(state: ResumeState, key: SigningKey): ResumeState {
  return { ...state, signature: macOf(state, key) }
}

/** Refuses a state that was not signed with `key`, or was changed since. */
export function checkSignature(state: ResumeState, key: SigningKey): void {
  const { signature } = state
  const given = typeof signature === 'string' ? Buffer.from(signature) : undefined
  const made = Buffer.from(macOf(state, key))
  if (given?.length === made.length && crypto().timingSafeEqual(given, made)) return
  const why =
    given === undefined
      ? 'it carries no signature'
      : 'its signature does not fit: it was changed, or signed with another key'
  throw new HarnessError('invalid_state', `The stored state of run \`${state.runId}\` is not to be trusted: ${why}.`)
}

function macOf(state: ResumeState, key: SigningKey): string {
  return crypto()
    .createHmac('sha256', key)
    .update(canonicalJson({ ...state, signature: undefined }))
    .digest('base64url')
}

/** Loaded by the first signature: most hosts sign nothing. */
function crypto(): typeof Crypto {
  return moduleOrStub('node:crypto')
}
