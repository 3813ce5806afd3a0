import type { JsonValue } from '#util/json.js'

/** An object or list that is still open, with its members that are whole. */
type Open =
  | { readonly kind: 'list'; readonly items: JsonValue[] }
  | { readonly kind: 'object'; readonly members: [string, JsonValue][]; key: string | null }

/** The next token that is allowed. */
type Expects =
  'value' | 'value_or_end' | 'key' | 'key_or_end' | 'colon' | 'comma_or_end' | 'string' | 'word' | 'nothing'

/**
 * Reads JSON text piece by piece. The value so far is a beginning of the whole value: lists and strings are cut at their end,
 * objects lack members, a number or a word appears when it is complete. Keeps its position, so that reading is linear in the
 * text.
 */
export class PartialJson {
  readonly #open: Open[] = []
  #expects: Expects = 'value'
  /** The complete value, at the end. */
  #whole: { readonly value: JsonValue } | null = null
  /** The text of a string, without the part that may still change; the raw text of a word. */
  #text = ''
  #isKey = false
  /** An incomplete escape. */
  #escape = ''
  /** The first half of a surrogate pair. */
  #half = ''
  #isBroken = false
  #revision = 0
  readonly #withoutNulls: boolean

  /** `withoutNulls`: members of objects that are null are left out. */
  constructor({ withoutNulls = false }: { readonly withoutNulls?: boolean } = {}) {
    this.#withoutNulls = withoutNulls
  }

  /** False once the text cannot be the beginning of JSON; then nothing more is read. */
  get isReadable(): boolean {
    return !this.#isBroken
  }

  /** Changes with the value. */
  get revision(): number {
    return this.#revision
  }

  /** How much there is to copy for a `value`. */
  get width(): number {
    return this.#open.reduce((sum, open) => sum + 1 + (open.kind === 'list' ? open.items : open.members).length, 1)
  }

  push(text: string): void {
    for (let at = 0; at < text.length && !this.#isBroken;) {
      at = this.#expects === 'string' ? this.#readString(text, at) : this.#readOther(text, at)
    }
  }

  /** The value so far; `undefined` while there is none. Complete parts are shared with later values. */
  value(): JsonValue | undefined {
    if (this.#whole !== null) return this.#whole.value
    let value: JsonValue | undefined = this.#expects === 'string' && !this.#isKey ? this.#text : undefined
    for (const open of this.#open.toReversed()) {
      if (open.kind === 'list') value = value === undefined ? [...open.items] : [...open.items, value]
      else {
        const last: [string, JsonValue][] = value === undefined || open.key === null ? [] : [[open.key, value]]
        // Makes own members of all names, `__proto__` too.
        value = Object.fromEntries([...open.members, ...last])
      }
    }
    return value
  }

  #readOther(text: string, at: number): number {
    const character = text.charAt(at)
    if (this.#expects === 'word') {
      if (/[-+.\w]/.test(character)) {
        this.#text += character
        return at + 1
      }
      this.#endWord()
      return at
    }
    if (!/[ \t\r\n]/.test(character)) this.#readToken(character)
    return at + 1
  }

  #readToken(character: string): void {
    const expects = this.#expects
    const isValue = expects === 'value' || expects === 'value_or_end'
    const isKey = expects === 'key' || expects === 'key_or_end'
    const ends = expects === 'comma_or_end' || expects === 'value_or_end' || expects === 'key_or_end'
    if (character === '"' && (isValue || isKey)) this.#beginText('string', '', isKey)
    else if (character === '{' && isValue) this.#begin({ kind: 'object', members: [], key: null }, 'key_or_end')
    else if (character === '[' && isValue) this.#begin({ kind: 'list', items: [] }, 'value_or_end')
    else if (character === ':' && expects === 'colon') this.#expects = 'value'
    else if (character === ',' && expects === 'comma_or_end') this.#expects = this.#isInList() ? 'value' : 'key'
    else if ((character === '}' || character === ']') && ends) this.#end(character)
    else if (isValue && /[-\dtfn]/.test(character)) this.#beginText('word', character, false)
    else this.#isBroken = true
  }

  #beginText(expects: 'string' | 'word', text: string, isKey: boolean): void {
    this.#expects = expects
    this.#text = text
    this.#isKey = isKey
    if (expects === 'string' && !isKey) this.#revision += 1
  }

  #begin(open: Open, expects: Expects): void {
    this.#open.push(open)
    this.#expects = expects
    this.#revision += 1
  }

  #isInList(): boolean {
    return this.#open.at(-1)?.kind === 'list'
  }

  #end(character: string): void {
    const open = this.#open.pop()
    if (open === undefined || (character === ']') !== (open.kind === 'list')) this.#isBroken = true
    else this.#add(open.kind === 'list' ? open.items : Object.fromEntries(open.members))
  }

  /** A value is whole. */
  #add(value: JsonValue): void {
    const open = this.#open.at(-1)
    this.#expects = open === undefined ? 'nothing' : 'comma_or_end'
    if (open === undefined) this.#whole = { value }
    else if (open.kind === 'list') open.items.push(value)
    else if (open.key !== null) {
      if (value !== null || !this.#withoutNulls) open.members.push([open.key, value])
      open.key = null
    }
    this.#revision += 1
  }

  #endWord(): void {
    const value = wordValue(this.#text)
    if (value === undefined) this.#isBroken = true
    else this.#add(value)
  }

  /** Takes all up to the next quote, escape or end of the piece at once. */
  #readString(text: string, at: number): number {
    if (this.#escape !== '') return this.#readEscape(text, at)
    const end = nextSpecial(text, at)
    if (end > at) this.#addText(text.slice(at, end))
    if (end === text.length) return end
    if (text.charAt(end) === '\\') this.#escape = '\\'
    else this.#endString()
    return end + 1
  }

  #readEscape(text: string, at: number): number {
    this.#escape += text.charAt(at)
    if (this.#escape.charAt(1) === 'u' && this.#escape.length < 6) return at + 1
    const character = wordValue(`"${this.#escape}"`)
    this.#escape = ''
    if (typeof character === 'string') this.#addText(character)
    else this.#isBroken = true
    return at + 1
  }

  #addText(text: string): void {
    const whole = this.#half + text
    const isHalf = /[\uD800-\uDBFF]$/.test(whole)
    this.#half = isHalf ? whole.slice(-1) : ''
    this.#text += isHalf ? whole.slice(0, -1) : whole
    if (!this.#isKey) this.#revision += 1
  }

  #endString(): void {
    // Half a pair that stays alone is text all the same.
    this.#text += this.#half
    this.#half = ''
    const open = this.#open.at(-1)
    if (!this.#isKey) this.#add(this.#text)
    else if (open?.kind === 'object') {
      open.key = this.#text
      this.#expects = 'colon'
    }
  }
}

function nextSpecial(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE || code === BACKSLASH) return at
  }
  return text.length
}

const QUOTE = 34
const BACKSLASH = 92

function wordValue(word: string): JsonValue | undefined {
  try {
    return JSON.parse(word) as JsonValue
  } catch {
    return undefined
  }
}
