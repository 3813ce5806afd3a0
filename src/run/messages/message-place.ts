import { isObject } from '#util/json.js'
import { shownValue } from '#util/mismatch.js'
import type { HarnessError } from '#contracts/errors.js'
import { invalidOptions } from '#contracts/parse.js'

/** A place in a list of messages, for errors that name it. */
export class At {
  readonly #path: string

  constructor(path: string) {
    this.#path = path
  }

  in(field: string): At {
    return new At(`${this.#path}.${field}`)
  }

  error(problem: string): HarnessError {
    return invalidOptions(`fromMessages: \`${this.#path}\`: ${problem}.`)
  }

  /** A field that must be a string. */
  text(object: Readonly<Record<string, unknown>>, field: string): string {
    const value = object[field]
    if (typeof value === 'string') return value
    throw this.in(field).error(`expected a string, got ${shownValue(value)}`)
  }

  /** The parts of a list, each with its place. */
  parts(list: unknown): readonly (readonly [Readonly<Record<string, unknown>>, At])[] {
    if (!Array.isArray(list)) throw this.error(`expected a string or a list of parts, got ${shownValue(list)}`)
    return (list as readonly unknown[]).map((part, index) => {
      const place = new At(`${this.#path}[${index}]`)
      if (!isObject(part)) throw place.error(`expected an object, got ${shownValue(part)}`)
      return [part, place] as const
    })
  }
}
