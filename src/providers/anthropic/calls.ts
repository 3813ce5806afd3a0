import { isObject, parseJson } from '../../util/json.js'
import type { JsonObject } from '../../util/json.js'

/** A call as the harness knows it. */
export interface NamedCall {
  readonly callId: string
  readonly arguments: string
}

/** Gives each call of one reply an id of its own. */
export class CallIds {
  readonly #callIdFor: (index: number) => string
  readonly #given = new Set<string>()
  #count = 0

  constructor(callIdFor: (index: number) => string) {
    this.#callIdFor = callIdFor
  }

  /** `id` where there is one that is new, else one of ours. */
  next(id: unknown): string {
    const index = this.#count++
    const callId = typeof id === 'string' && id !== '' && !this.#given.has(id) ? id : this.#callIdFor(index)
    this.#given.add(callId)
    return callId
  }
}

/** A call's input as text. */
export function argumentsOf(input: unknown): string {
  if (typeof input === 'string') return input === '' ? '{}' : input
  return JSON.stringify(input ?? {})
}

/** Arguments as the object that the API wants; text that is none is kept in it as the model wrote it. */
export function inputOf(text: string): JsonObject {
  if (text.trim() === '') return {}
  const parsed = parseJson(text)
  return parsed.ok && isObject(parsed.value) ? parsed.value : { invalid_arguments: text }
}
