import type { JsonObject, JsonValue } from '#util/json.js'

/** Longest text that a skimmed line keeps, in characters of its JSON. */
const LONGEST = 240

/** Members that the outline does not need, and that can be large. */
const SKIPPED: ReadonlySet<string> = new Set([
  'native',
  'state',
  'view',
  'config',
  'value',
  'children',
  'data',
  'annotations',
])

/**
 * The value in a line of JSON, as an outline needs it: long texts are cut, `history` is the number of its entries if they are here, and
 * members that only details show are left out without being looked at. Throws a `SyntaxError` for a line that ends too early, or is none.
 *
 * @example
 * skim('{"kind":"text","text":"…"}') // { kind: 'text', text: '…' }
 */
export function skim(line: string): JsonObject {
  const reader = new Skimmer(line)
  const value = reader.value('')
  reader.end()
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new SyntaxError('Expected an object.')
  return value as JsonObject
}

class Skimmer {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  value(name: string): JsonValue {
    this.#space()
    const code = this.#text.charCodeAt(this.#at)
    if (code === QUOTE) return this.#string()
    if (code === BRACE) return this.#object()
    if (code === BRACKET) return name === 'history' ? this.#count() : this.#list()
    return this.#plain()
  }

  end(): void {
    this.#space()
    if (this.#at < this.#text.length) throw this.#problem()
  }

  #object(): JsonObject {
    const members: Record<string, JsonValue> = {}
    this.#at += 1
    while (!this.#closes(CLOSING_BRACE)) {
      const name = this.#string()
      this.#take(COLON)
      if (SKIPPED.has(name)) this.#skip()
      else if (name === '__proto__') this.value(name)
      else {
        const from = this.#at
        members[name] = this.value(name)
        // Long arguments that begin alike are told apart.
        if (name === 'arguments' && this.#at - from > LONGEST)
          members['argumentsKey'] = argumentsKeyOf(this.#text.slice(from, this.#at))
      }
    }
    return members
  }

  #list(): JsonValue[] {
    const items: JsonValue[] = []
    this.#at += 1
    while (!this.#closes(CLOSING_BRACKET)) items.push(this.value(''))
    return items
  }

  /** How many items a list has. */
  #count(): number {
    let count = 0
    this.#at += 1
    while (!this.#closes(CLOSING_BRACKET)) {
      this.#skip()
      count += 1
    }
    return count
  }

  /** Takes a comma, or the end of what is open: then it is true. */
  #closes(closing: number): boolean {
    this.#space()
    const code = this.#text.charCodeAt(this.#at)
    if (code === closing) {
      this.#at += 1
      return true
    }
    if (code === COMMA) this.#at += 1
    this.#space()
    return false
  }

  #string(): string {
    const from = this.#at
    const end = this.#endOfString()
    this.#at = end + 1
    if (end - from <= LONGEST) {
      const text = this.#text.slice(from + 1, end)
      return text.includes('\\') ? (JSON.parse(this.#text.slice(from, end + 1)) as string) : text
    }
    // An escape that the cut divides is left out.
    const head = this.#text.slice(from + 1, from + LONGEST).replace(/\\(?:u[\da-f]{0,3})?$/i, '')
    return `${decoded(head)}…`
  }

  /** The place of the quote that ends the text that begins here. */
  #endOfString(): number {
    if (this.#text.charCodeAt(this.#at) !== QUOTE) throw this.#problem()
    let at = this.#at
    for (;;) {
      at = this.#text.indexOf('"', at + 1)
      if (at < 0) throw this.#problem()
      let slashes = 0
      while (this.#text.charCodeAt(at - 1 - slashes) === BACKSLASH) slashes += 1
      if (slashes % 2 === 0) return at
    }
  }

  /** A number, true, false or null. */
  #plain(): JsonValue {
    const code = this.#text.charCodeAt(this.#at)
    if (code === LOWER_N && this.#takes('null')) return null
    if (code === LOWER_F && this.#takes('false')) return false
    if (code === LOWER_T && this.#takes('true')) return true
    PLAIN.lastIndex = this.#at
    const [found] = PLAIN.exec(this.#text) ?? []
    if (found === undefined) throw this.#problem()
    this.#at += found.length
    return Number(found)
  }

  #takes(word: string): boolean {
    if (!this.#text.startsWith(word, this.#at)) return false
    this.#at += word.length
    return true
  }

  /** Passes over a value, whatever it is. */
  #skip(): void {
    this.#space()
    let depth = 0
    do {
      INTERESTING.lastIndex = this.#at
      const found = INTERESTING.exec(this.#text)
      if (found === null) throw this.#problem()
      const code = this.#text.charCodeAt(found.index)
      this.#at = found.index
      if (code === QUOTE) this.#at = this.#endOfString() + 1
      else if (code === BRACE || code === BRACKET) depth += 1
      else if (code === CLOSING_BRACE || code === CLOSING_BRACKET) depth -= 1
      // A plain value ends before what follows it.
      if (depth < 0 || (depth === 0 && code === COMMA)) return
      if (code !== QUOTE) this.#at += 1
    } while (depth > 0)
  }

  #take(code: number): void {
    this.#space()
    if (this.#text.charCodeAt(this.#at) !== code) throw this.#problem()
    this.#at += 1
  }

  #space(): void {
    while (this.#at < this.#text.length && this.#text.charCodeAt(this.#at) <= SPACE) this.#at += 1
  }

  #problem(): SyntaxError {
    return new SyntaxError(
      this.#at >= this.#text.length || !this.#text.endsWith('}')
        ? 'It ends in the middle.'
        : `It is no JSON at character ${this.#at + 1}.`,
    )
  }
}

function decoded(text: string): string {
  try {
    return JSON.parse(`"${text}"`) as string
  } catch {
    return text
  }
}

/** Nearly always another one for another text. */
function argumentsKeyOf(text: string): string {
  let hash = 0
  for (let at = 0; at < text.length; at++) hash = (Math.imul(hash, 31) + text.charCodeAt(at)) | 0
  return `${text.length}:${hash}`
}

const PLAIN = /-?\d[\d.eE+-]*/y
const INTERESTING = /["{}[\],]/g
const LOWER_F = 0x66
const LOWER_N = 0x6e
const LOWER_T = 0x74
const QUOTE = 0x22
const BACKSLASH = 0x5c
const BRACE = 0x7b
const CLOSING_BRACE = 0x7d
const BRACKET = 0x5b
const CLOSING_BRACKET = 0x5d
const COMMA = 0x2c
const COLON = 0x3a
const SPACE = 0x20
