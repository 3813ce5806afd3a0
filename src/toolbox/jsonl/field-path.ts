import { invalidInput } from '../workspace/file-failure.js'

/** A step from a JSON value to one inside it: the key of an object, or the index in an array, negative from the end. */
export type FieldStep = string | number

export interface FieldPath {
  /** As written. */
  readonly text: string
  readonly steps: readonly FieldStep[]
}

type FieldPathResult =
  { readonly ok: true; readonly path: FieldPath } | { readonly ok: false; readonly problem: string }

/**
 * Reads a path such as `user.tags[0]`, `items[-1].id` or `["any key"]`: identifiers, indices and quoted keys,
 * a dot allowed before each.
 */
export function parseFieldPath(text: string): FieldPathResult {
  const steps: FieldStep[] = []
  const segment = /\.?(?:([A-Za-z_][A-Za-z0-9_]*)|\[(-?\d{1,15})\]|\["([^"]*)"\]|\['([^']*)'\])/y
  while (segment.lastIndex < text.length) {
    const at = segment.lastIndex
    const [, identifier, index, doubleQuoted, singleQuoted] = segment.exec(text) ?? []
    const key = identifier ?? doubleQuoted ?? singleQuoted
    if (key !== undefined) steps.push(key)
    else if (index !== undefined) steps.push(Number(index))
    else return { ok: false, problem: `\`${text.slice(0, 80)}\` cannot be read at character ${at + 1}` }
  }
  if (steps.length === 0) return { ok: false, problem: 'the path is empty (at character 1)' }
  return { ok: true, path: { text, steps } }
}

/** @throws FileFailure `InvalidInput`. */
export function fieldPath(text: string): FieldPath {
  const parsed = parseFieldPath(text)
  if (!parsed.ok) throw invalidInput(`invalid field path: ${parsed.problem}`)
  return parsed.path
}

/** The value at a path; `undefined` if there is none. */
export function valueAt(value: unknown, { steps }: FieldPath): unknown {
  let at: unknown = value
  for (const step of steps) {
    at = typeof step === 'number' ? elementOf(at, step) : memberOf(at, step)
    if (at === undefined) return undefined
  }
  return at
}

function elementOf(value: unknown, index: number): unknown {
  return Array.isArray(value) ? value.at(index) : undefined
}

function memberOf(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  return Object.hasOwn(value, key) ? (value as Readonly<Record<string, unknown>>)[key] : undefined
}
