import { withoutSecrets } from './secrets.js'
import type { JsonValue } from './json.js'

/**
 * Any value as plain JSON, such as a handler's return value for a model. Never throws: a value without a JSON form becomes a
 * short string (a bigint its digits, an error its name and message, a cycle `[circular]`), a `Map` an object or a list of
 * pairs, a `Set` a list. Stops after 2 million values, 60 million characters or 100 levels, with a note.
 */
export function plainJson(value: unknown): JsonValue {
  return new Copier().copy(value) ?? null
}

/** The same as compact JSON text. */
export function plainJsonText(value: unknown): string {
  return compactText(plainJson(value))
}

/** Compact JSON text; a note if it would be longer than the longest string. */
export function compactText(value: JsonValue): string {
  try {
    return JSON.stringify(value)
  } catch (error) {
    return `[a result that is too large to be shown: ${thrownText(error)}]`
  }
}

/** `Name: message` of anything that was thrown or returned as an error, whatever its getters do. */
export function errorText(error: unknown): string {
  return `${errorName(error)}: ${withoutSecrets(thrownText(error))}`
}

/** The name of an error; `Error` if it has none. */
export function errorName(error: unknown): string {
  const name = error instanceof Error ? readMember(error, 'name') : undefined
  return typeof name === 'string' && name.trim() !== '' ? name.slice(0, 100) : 'Error'
}

const MOST_VALUES = 2_000_000
const MOST_CHARS = 60_000_000
const MOST_LEVELS = 100

class Copier {
  readonly #above = new Set<object>()
  #values = 0
  #chars = 0

  /** `undefined` for values that an object leaves out. */
  copy(value: unknown): JsonValue | undefined {
    switch (typeof value) {
      case 'string':
        this.#chars += value.length
        return this.#chars > MOST_CHARS ? `[${value.length} characters left out]` : value
      case 'number':
        return Number.isFinite(value) ? value : String(value)
      case 'boolean':
        return value
      case 'undefined':
        return undefined
      case 'object':
        return value === null ? null : this.#object(value)
      case 'function':
        return '[function]'
      case 'bigint':
      case 'symbol':
        return String(value)
    }
  }

  #object(value: object): JsonValue | undefined {
    if (this.#above.has(value)) return '[circular]'
    if (this.#above.size >= MOST_LEVELS) return '[nested too deeply to be shown]'
    this.#above.add(value)
    try {
      return this.#members(value)
    } catch (error) {
      return `[unreadable: ${thrownText(error)}]`
    } finally {
      this.#above.delete(value)
    }
  }

  #members(value: object): JsonValue | undefined {
    if (value instanceof Error) return errorText(value)
    if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `[${value.byteLength} bytes of binary data]`
    if (Array.isArray(value) || value instanceof Set) return this.#list(value)
    if (value instanceof Map) return this.#map(value)
    if (value instanceof RegExp) return String(value)
    const toJson = (value as { readonly toJSON?: unknown }).toJSON
    if (typeof toJson === 'function') return this.copy((toJson as () => unknown).call(value))
    return this.#entries(Object.keys(value).map((key) => [key, () => (value as Record<string, unknown>)[key]]))
  }

  #list(items: Iterable<unknown>): JsonValue[] {
    const copies: JsonValue[] = []
    for (const item of items) {
      if (this.#isFull()) return [...copies, '[more was left out]']
      copies.push(this.copy(item) ?? null)
    }
    return copies
  }

  #map(map: ReadonlyMap<unknown, unknown>): JsonValue {
    const entries = [...map]
    const hasNames = entries.every(([key]) => typeof key === 'string')
    return hasNames ? this.#entries(entries.map(([key, each]) => [String(key), () => each])) : this.#list(entries)
  }

  #entries(entries: [string, () => unknown][]): JsonValue {
    const copies: [string, JsonValue | undefined][] = []
    for (const [key, read] of entries) {
      if (this.#isFull()) {
        copies.push(['[more]', '[more was left out]'])
        break
      }
      copies.push([key, this.#read(read)])
    }
    return Object.fromEntries(copies.filter(([, copy]) => copy !== undefined))
  }

  /** A getter may throw; its neighbours are still worth reading. */
  #read(read: () => unknown): JsonValue | undefined {
    let value: unknown
    try {
      value = read()
    } catch (error) {
      return `[unreadable: ${thrownText(error)}]`
    }
    return this.copy(value)
  }

  #isFull(): boolean {
    return ++this.#values > MOST_VALUES
  }
}

/** The message of anything that was thrown, as far as it can be read. */
function thrownText(thrown: unknown): string {
  if (typeof thrown === 'string') return thrown.slice(0, 2_000)
  const message = typeof thrown === 'object' && thrown !== null ? readMember(thrown, 'message') : undefined
  return typeof message === 'string' ? message.slice(0, 2_000) : 'unknown error'
}

function readMember(value: object, key: string): unknown {
  try {
    return (value as Record<string, unknown>)[key]
  } catch {
    return undefined
  }
}
