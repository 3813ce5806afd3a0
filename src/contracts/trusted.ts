import { isObject } from '#util/json.js'

/** Not in JSON: what a client sends cannot have it. */
const TRUSTED: unique symbol = Symbol.for('thinharness.trusted')

/** A history that comes from the host itself. */
export interface Trusted<History> {
  readonly [TRUSTED]: History
}

/**
 * Vouches for a history: a harness with a `signingKey` takes entries, and the id of a run, in this form only. Never pass what
 * a client has sent.
 */
export function trusted<History>(history: History): Trusted<History> {
  return { [TRUSTED]: history }
}

/** The history itself, and whether the host vouches for it. */
export function openedHistory<History>(given: History | Trusted<History>): {
  readonly history: History
  readonly isTrusted: boolean
} {
  return isTrusted(given) ? { history: given[TRUSTED], isTrusted: true } : { history: given, isTrusted: false }
}

function isTrusted<History>(given: History | Trusted<History>): given is Trusted<History> {
  return isObject(given) && TRUSTED in given
}
