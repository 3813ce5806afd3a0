import { isObject } from './json.js'

/** The first part of a value that does not fit its shape. */
export class Mismatch {
  /** Keys and indexes from the value down to that part; empty: the value itself. */
  readonly path: readonly (string | number)[]
  /** Completes 'Expected it to be …'; null: the part has no business there. */
  readonly expected: string | null
  /** Completes 'got …'. */
  readonly got: string
  /** A suggestion as a sentence, with a space before it, or an empty string. */
  readonly hint: string

  constructor(part: Pick<Mismatch, 'path' | 'expected' | 'got' | 'hint'>) {
    this.path = part.path
    this.expected = part.expected
    this.got = part.got
    this.hint = part.hint
  }

  /** The same, from the value that has this one at `key`. */
  within(key: string | number): Mismatch {
    return new Mismatch({ path: [key, ...this.path], expected: this.expected, got: this.got, hint: this.hint })
  }

  /** The same, for a value that may be a secret. */
  withoutValue(): Mismatch {
    return new Mismatch({ path: this.path, expected: this.expected, got: 'something else', hint: '' })
  }

  /**
   * One sentence: 'Expected `limits.toolCalls` of `Harness` to be a whole number from 0 up, got `-1`.' `noun` is the word for a
   * key, `name` names its owner. Without a noun `name` is the value itself.
   */
  message(name: string, noun?: string): string {
    const path = pathText(this.path)
    if (this.expected === null) return `Unknown ${noun ?? 'field'} of ${name}: \`${path}\`.${this.hint}`
    const whole = noun === undefined ? name : `the ${noun}s of ${name}`
    const part = path === '' ? whole : `\`${path}\` of ${name}`
    return `Expected ${part} to be ${this.expected}, got ${this.got}.${this.hint}`
  }
}

function pathText(path: readonly (string | number)[]): string {
  return path.map(stepText).join('').replace(/^\./, '')
}

function stepText(step: string | number): string {
  if (typeof step === 'number') return `[${step}]`
  return /^[\w$-]+$/.test(step) ? `.${step}` : `['${step}']`
}

/** An unexpected value. */
export function mismatch(expected: string, value: unknown, hint = ''): Mismatch {
  return new Mismatch({ path: [], expected, got: shownValue(value), hint })
}

const LIKE_ANOTHER = /^(?:[-+]?[\d.]+|true|false|null|undefined)$/

/** A short description of any value: 'got …'. */
export function shownValue(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === '') return 'an empty string'
  // `2` alone would look like the number.
  if (typeof value === 'string') return `${LIKE_ANOTHER.test(value) ? 'the string ' : ''}\`${value.slice(0, 100)}\``
  if (typeof value === 'function') return 'a function'
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list'
  if (isObject(value)) return 'an object'
  const primitive = value as number | boolean | bigint | symbol | null
  return `\`${String(primitive)}\``
}
