import { isDeepStrictEqual } from 'node:util'
import { messageOf } from '#contracts/errors.js'

/** Throws unless both are the same JSON; the members of an object may be in another order. */
export function expectSame(what: string, got: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(asJson(got), asJson(expected))) throw differenceError(what, got, expected)
}

export function differenceError(what: string, got: unknown, expected: unknown): Error {
  return new Error(`Expected ${what} to be ${shortJson(expected)}, got ${shortJson(got)}.`)
}

function asJson(value: unknown): unknown {
  return value === undefined ? null : JSON.parse(JSON.stringify(value))
}

export function shortJson(value: unknown): string {
  const text = value === undefined ? 'nothing' : JSON.stringify(value)
  return text.length > 600 ? `${text.slice(0, 600)}… (${text.length} characters)` : text
}

/** The error of a law that does not hold. `hint` comes after the problem. */
export function brokenLaw(law: { readonly name: string; readonly says: string }, cause: unknown, hint = ''): Error {
  return new Error(`The law \`${law.name}\` is broken. ${law.says}\n${messageOf(cause)}${hint}`, { cause })
}
