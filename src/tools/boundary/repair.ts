import { firstDifference } from '../../util/first-difference.js'
import { isObject } from '../../util/json.js'
import type { JsonObject, JsonValue } from '../../util/json.js'
import { openPlaces } from '../../schema/places.js'
import type { Place } from '../../schema/places.js'
import type { ToolSpec } from '../spec.js'
import type { ArgumentIssue } from '../../schema/validation.js'
import { isList } from '../../schema/subschemas.js'

/** Arguments with every allowed repair applied; the same object if there is none. */
export interface Repaired {
  readonly value: JsonObject
  /** What was repaired, a sentence each, in a fixed order. */
  readonly repairs: readonly string[]
  /** Fields sent under two names with different values: nothing may be repaired then. */
  readonly conflicts: readonly ArgumentIssue[]
}

/**
 * Repairs the shape of arguments by the tool's schema alone: other spellings of a declared field, `"true"` where a
 * boolean is wanted, `"12"` where a whole number is, links around a path. Pure and idempotent; whether the result is
 * used depends on its being valid.
 */
export function repairArguments(spec: Omit<ToolSpec, 'call'>, args: JsonObject): Repaired {
  const repairer = new Repairer(spec)
  const value = repairer.object(args, openPlaces(spec.parameters).root)
  return { value, repairs: repairer.repairs.sort(), conflicts: repairer.conflicts }
}

class Repairer {
  readonly repairs: string[] = []
  readonly conflicts: ArgumentIssue[] = []
  readonly #spec: Omit<ToolSpec, 'call'>
  readonly #path: (string | number)[] = []

  constructor(spec: Omit<ToolSpec, 'call'>) {
    this.#spec = spec
  }

  object(value: JsonObject, place: Place): JsonObject {
    const keys = Object.keys(value)
    const kept = keys.filter((key) => this.#meant(key, place) === undefined)
    const members = kept.map((key): [string, JsonValue] => [key, this.#member(key, key, { value, place })])
    if (kept.length < keys.length) return this.#renamed(value, place, new Map(members))
    return members.every(([key, member]) => member === value[key]) ? value : Object.fromEntries(members)
  }

  #renamed(value: JsonObject, place: Place, kept: ReadonlyMap<string, JsonValue>): JsonObject {
    const renamed = new Map<string, JsonValue>()
    for (const key of Object.keys(value)) {
      const name = this.#meant(key, place)
      const member = name === undefined ? kept.get(key) : this.#member(key, name, { value, place })
      const other = name === undefined ? undefined : (kept.has(name) ? kept : renamed).get(name)
      if (member === undefined) continue
      if (other === undefined) renamed.set(name ?? key, member)
      if (name !== undefined) this.#judge(key, name, { member, other })
    }
    return Object.fromEntries(renamed)
  }

  /** What is to be said of a field that stands for another one, which may have been sent too. */
  #judge(
    key: string,
    name: string,
    { member, other }: { readonly member: JsonValue; readonly other: JsonValue | undefined },
  ): void {
    if (other === undefined) {
      this.#note(`${this.#named(key)} was read as \`${name}\``)
    } else if (firstDifference(other, member) === undefined) {
      this.#note(`${this.#named(key)} was dropped: it says the same as \`${name}\``)
    } else {
      const message = `means the same as \`${name}\`, which was sent with another value; send \`${name}\` only`
      this.conflicts.push({ path: [...this.#path, key], type: 'conflict', message })
    }
  }

  #member(
    key: string,
    name: string,
    { value, place }: { readonly value: JsonObject; readonly place: Place },
  ): JsonValue {
    this.#path.push(key)
    const member = this.#value(value[key] ?? null, place.field(name), this.#spec.pathFields?.includes(name) ?? false)
    this.#path.pop()
    return member
  }

  #value(value: JsonValue, place: Place | undefined, isPath: boolean): JsonValue {
    if (typeof value === 'string') return this.#text(value, place, isPath)
    if (isList(value)) return this.#list(value, place?.items, isPath)
    return isObject(value) && place !== undefined ? this.object(value, place) : value
  }

  #list(list: readonly JsonValue[], place: Place | undefined, isPath: boolean): readonly JsonValue[] {
    if (place === undefined && !isPath) return list
    const items = list.map((item, index) => {
      this.#path.push(index)
      const repaired = this.#value(item, place, isPath)
      this.#path.pop()
      return repaired
    })
    return items.every((item, index) => item === list[index]) ? list : items
  }

  #text(text: string, place: Place | undefined, isPath: boolean): JsonValue {
    const types = place?.types
    if (types !== undefined && !types.has('string')) {
      if (types.has('boolean') && BOOLEAN.test(text)) {
        this.#note(`the text in ${this.#named()} was read as true or false`)
        return text.trim().toLowerCase() === 'true'
      }
      if (types.has('integer') && INTEGER.test(text)) {
        this.#note(`the text in ${this.#named()} was read as a whole number`)
        return wholeNumber(text)
      }
    }
    const target = isPath ? linkTarget(text) : undefined
    if (target === undefined) return text
    this.#note(`the link in ${this.#named()} was read as the path in it`)
    return target
  }

  /** The declared field that one stands for of which the schema says nothing. */
  #meant(key: string, place: Place): string | undefined {
    return place.field(key) === undefined ? spellingsOf(place, this.#spec.aliases).get(key) : undefined
  }

  #named(key?: string): string {
    return `\`${[...this.#path, ...(key === undefined ? [] : [key])].join('.')}\``
  }

  #note(repair: string): void {
    this.repairs.push(repair)
  }
}

const BOOLEAN = /^\s*(?:true|false)\s*$/i
const INTEGER = /^[+-]?\d{1,15}$/

/** `-0` is no number that a tool expects. */
function wholeNumber(text: string): number {
  return Number(text) + 0
}

/** Spellings that models use in place of these names, whatever the tool. */
const COMMON: Readonly<Record<string, string>> = { filePath: 'path', file_path: 'path', cmd: 'command' }

const NO_ALIASES: Readonly<Record<string, string>> = {}

/** Other spellings of a place's fields. What the tool says itself wins, then other cases of a name, then the common ones. */
function spellingsOf(place: Place, aliases = NO_ALIASES): ReadonlyMap<string, string> {
  let known = spellings.get(aliases)
  if (known === undefined) spellings.set(aliases, (known = new WeakMap()))
  let found = known.get(place)
  if (found === undefined) known.set(place, (found = readSpellings(place, aliases)))
  return found
}

const spellings = new WeakMap<Readonly<Record<string, string>>, WeakMap<Place, ReadonlyMap<string, string>>>()

function readSpellings(place: Place, aliases: Readonly<Record<string, string>>): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  const add = (spelling: string, name: string): void => {
    if (place.has(name) && !place.has(spelling) && !found.has(spelling)) found.set(spelling, name)
  }
  for (const [spelling, name] of Object.entries(aliases)) add(spelling, name)
  for (const name of place.names) {
    if (!SNAKE_CASE.test(name)) continue
    add(
      name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()),
      name,
    )
    add(name.replaceAll('_', '-'), name)
  }
  for (const [spelling, name] of Object.entries(COMMON)) add(spelling, name)
  return found
}

const SNAKE_CASE = /^[a-z][a-z0-9]*(?:_[a-z0-9]+)+$/

/**
 * The path in `[path](link)` or `<path>`, when the whole text is that and the link says the same as its label. A path
 * that would be a link again is left alone, so that a repair is never undone by another one.
 */
function linkTarget(text: string): string | undefined {
  const target = unwrapped(text)
  return target === undefined || unwrapped(target) !== undefined ? undefined : target
}

function unwrapped(text: string): string | undefined {
  if (text.length > LONGEST_LINK) return undefined
  if (/^<[^<>\n]+>$/.test(text)) return withoutScheme(text.slice(1, -1))
  if (!text.startsWith('[') || !text.endsWith(')')) return undefined
  // Label and target may hold brackets themselves: `app/(group)/[id].ts`.
  for (let middle = text.indexOf(']('); middle > 0; middle = text.indexOf('](', middle + 1)) {
    const label = text.slice(1, middle)
    if (label !== '' && withoutScheme(text.slice(middle + 2, -1)) === withoutSlash(label)) return label
  }
  return undefined
}

/** In characters; no file system has longer paths. */
const LONGEST_LINK = 10_000

function withoutScheme(target: string): string {
  return withoutSlash(target.replace(/^(?:https?|file):\/\//, ''))
}

function withoutSlash(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
}
