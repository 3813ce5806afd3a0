import { createHash } from 'node:crypto'

/** The signature of a reasoning text. A client must send it back with the very same text. */
export function reasoningSignature(text: string): string {
  return `Eq${createHash('sha256').update(`reasoning ${text}`).digest('base64')}`
}

const SEAL = 'gAAAAA'

/** A reasoning text in a form that only this server reads. */
export function sealText(text: string): string {
  return `${SEAL}${reasoningSignature(text).slice(2, 12)}.${Buffer.from(text).toString('base64url')}`
}

/** True for an unchanged result of `sealText`. */
export function isSealed(blob: unknown): boolean {
  if (typeof blob !== 'string' || !blob.startsWith(SEAL)) return false
  const text = Buffer.from(blob.slice(blob.indexOf('.') + 1), 'base64url').toString()
  return sealText(text) === blob
}
