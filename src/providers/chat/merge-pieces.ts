import { isObject } from '../../util/json.js'

/** Members that identify an object: a later piece repeats them. */
const NAMES: ReadonlySet<string> = new Set(['id', 'type', 'index', 'format', 'role'])

/** The sum of the pieces of a stream. */
export function mergedPieces(pieces: readonly unknown[]): unknown {
  if (pieces.every((piece) => Array.isArray(piece))) return pieces.flat()
  return pieces.reduce((value, piece) => mergePieces(value, piece))
}

/**
 * A value of a stream with its next piece: strings and lists are appended, objects are merged, repetitions are ignored.
 * For fields of unknown meaning.
 */
export function mergePieces(value: unknown, piece: unknown): unknown {
  if (piece === null) return value
  if (typeof value === 'string' && typeof piece === 'string') return value === piece ? value : value + piece
  if (Array.isArray(value) && Array.isArray(piece)) return [...(value as unknown[]), ...(piece as unknown[])]
  if (!isObject(value) || !isObject(piece)) return piece
  const merged: Record<string, unknown> = { ...value }
  for (const [name, part] of Object.entries(piece)) {
    const isName = NAMES.has(name) && part !== null
    Object.defineProperty(merged, name, {
      value: isName ? part : mergePieces(Object.hasOwn(value, name) ? value[name] : undefined, part),
      enumerable: true,
      configurable: true,
      writable: true,
    })
  }
  return merged
}
