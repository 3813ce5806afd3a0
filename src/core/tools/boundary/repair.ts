import { firstDifference } from '#util/first-difference.js'
import { isObject } from '#util/json.js'
import type { JsonObject, JsonValue } from '#util/json.js'
import { openPlaces } from '#schema/value-places.js'
import type { ValuePlace } from '#schema/value-places.js'
import type { ToolSpec } from '../tool-spec.js'
import type { ArgumentIssue } from '#schema/argument-issues.js'
import { isList } from '#schema/subschemas.js'

/** Arguments with every allowed repair applied. */
export interface Repaired {
  readonly value: JsonObject
  /** The repairs, a sentence each, in a fixed order. */
  readonly repairs: readonly string[]
  /** Fields sent under two names with different values: nothing may be repaired then. */
  readonly conflicts: readonly ArgumentIssue[]
}

type RepairRules = Pick<ToolSpec, 'parameters' | 'aliases' | 'pathFields'>

/** True if `repairArguments` would find a repair or a conflict. Changes nothing, and is all that usual arguments need. */
export function isRepairable({ parameters, aliases, pathFields }: RepairRules, args: JsonObject): boolean {
  const inValue = (value: JsonValue, place: ValuePlace | undefined, isPath: boolean): boolean => {
    if (typeof value === 'string') {
      const isMeantAsText = place?.types?.has('string') ?? true
      return !(isMeantAsText && !isPath) && textRepair(value, place, isPath) !== undefined
    }
    if (place === undefined && !isPath) return false
    if (!isObject(value)) {
      const items = place?.items
      return Array.isArray(value) && value.some((item: JsonValue) => inValue(item, items, isPath))
    }
    if (place === undefined) return false
    return Object.keys(value).some((key) => {
      const field = place.field(key)
      if (field === undefined && spellingsOf(place, aliases).has(key)) return true
      return inValue(value[key] ?? null, field, pathFields?.includes(key) ?? false)
    })
  }
  const { root } = openPlaces(parameters)
  return inValue(args, root, false) || (root.names.length === 1 && listMeantBy(args, root, aliases) !== undefined)
}

/** The only field of a tool, a list, if its arguments are one item of that list. */
function listMeantBy(args: JsonObject, root: ValuePlace, aliases: RepairRules['aliases']): string | undefined {
  const [list = '', ...others] = root.names
  const item = others.length === 0 ? root.field(list)?.items : undefined
  if (item === undefined || item.names.length === 0) return undefined
  const keys = Object.keys(args)
  const isItem = keys.every(
    (key) => root.field(key) === undefined && (item.has(key) || spellingsOf(item, aliases).has(key)),
  )
  return isItem && keys.length > 0 ? list : undefined
}

/**
 * Repairs the shape of arguments by the tool's schema alone: other spellings of a declared field, `"true"` for a boolean,
 * `"12"` for a whole number, links around a path, one item for a list. Pure and idempotent; the result is used only if it is valid.
 */
export function repairArguments(rules: RepairRules, args: JsonObject): Repaired {
  const repairer = new Repairer(rules)
  const { root } = openPlaces(rules.parameters)
  const list = listMeantBy(args, root, rules.aliases)
  if (list !== undefined) repairer.repairs.push(`the fields of one item were read as the list \`${list}\``)
  const value = repairer.object(list === undefined ? args : { [list]: [args] }, root)
  return { value, repairs: repairer.repairs.sort(), conflicts: repairer.conflicts }
}

class Repairer {
  readonly repairs: string[] = []
  readonly conflicts: ArgumentIssue[] = []
  readonly #rules: RepairRules
  readonly #path: (string | number)[] = []

  constructor(rules: RepairRules) {
    this.#rules = rules
  }

  object(value: JsonObject, place: ValuePlace): JsonObject {
    const declared = new Map<string, JsonValue>()
    const keys = Object.keys(value).map((key) => ({ key, name: this.#declaredName(key, place) }))
    for (const { key, name } of keys) {
      if (name === undefined) declared.set(key, this.#member(key, key, { value, place }))
    }
    const members = new Map<string, JsonValue>()
    for (const { key, name } of keys) {
      if (name === undefined) {
        members.set(key, declared.get(key) ?? null)
        continue
      }
      const member = this.#member(key, name, { value, place })
      const other = (declared.has(name) ? declared : members).get(name)
      if (other === undefined) members.set(name, member)
      this.#noteName(key, name, { member, other })
    }
    return Object.fromEntries(members)
  }

  /** Reports a field that was sent under another name, and perhaps under its own as well. */
  #noteName(
    key: string,
    name: string,
    { member, other }: { readonly member: JsonValue; readonly other: JsonValue | undefined },
  ): void {
    if (other === undefined) {
      this.repairs.push(`${this.#named(key)} was read as \`${name}\``)
    } else if (firstDifference(other, member) === undefined) {
      this.repairs.push(`${this.#named(key)} was dropped: it says the same as \`${name}\``)
    } else {
      const message = `means the same as \`${name}\`, which was sent with another value; send \`${name}\` only`
      this.conflicts.push({ path: [...this.#path, key], type: 'conflict', message })
    }
  }

  #member(
    key: string,
    name: string,
    { value, place }: { readonly value: JsonObject; readonly place: ValuePlace },
  ): JsonValue {
    this.#path.push(key)
    const member = this.#value(value[key] ?? null, place.field(name), this.#rules.pathFields?.includes(name) ?? false)
    this.#path.pop()
    return member
  }

  #value(value: JsonValue, place: ValuePlace | undefined, isPath: boolean): JsonValue {
    if (typeof value === 'string') return this.#text(value, place, isPath)
    if (isList(value)) {
      return value.map((item, index) => {
        this.#path.push(index)
        const repaired = this.#value(item, place?.items, isPath)
        this.#path.pop()
        return repaired
      })
    }
    return isObject(value) && place !== undefined ? this.object(value, place) : value
  }

  #text(text: string, place: ValuePlace | undefined, isPath: boolean): JsonValue {
    const repair = textRepair(text, place, isPath)
    if (repair === undefined) return text
    this.repairs.push(`the ${repair.form} in ${this.#named()} was read as ${repair.kind}`)
    return repair.value
  }

  /** The declared field that a field stands for about which the schema says nothing. */
  #declaredName(key: string, place: ValuePlace): string | undefined {
    return place.field(key) === undefined ? spellingsOf(place, this.#rules.aliases).get(key) : undefined
  }

  #named(key?: string): string {
    return `\`${[...this.#path, ...(key === undefined ? [] : [key])].join('.')}\``
  }
}

interface TextRepair {
  readonly value: JsonValue
  readonly form: 'text' | 'link'
  readonly kind: string
}

function textRepair(text: string, place: ValuePlace | undefined, isPath: boolean): TextRepair | undefined {
  const types = place?.types
  if (types !== undefined && !types.has('string')) {
    if (types.has('boolean') && BOOLEAN.test(text)) {
      return { value: text.trim().toLowerCase() === 'true', form: 'text', kind: 'true or false' }
    }
    if (types.has('integer') && INTEGER.test(text)) {
      return { value: wholeNumber(text), form: 'text', kind: 'a whole number' }
    }
  }
  const target = isPath ? linkTarget(text) : undefined
  return target === undefined ? undefined : { value: target, form: 'link', kind: 'the path in it' }
}

const BOOLEAN = /^\s*(?:true|false)\s*$/i
const INTEGER = /^[+-]?\d{1,15}$/

/** Tools do not expect `-0`. */
function wholeNumber(text: string): number {
  return Number(text) + 0
}

/** Spellings that models use for these names with any tool. */
const COMMON: Readonly<Record<string, string>> = { filePath: 'path', file_path: 'path', cmd: 'command' }

const NO_ALIASES: Readonly<Record<string, string>> = {}

/** Other spellings of a place's fields. The tool's aliases come first, then other cases of a name, then the common ones. */
function spellingsOf(place: ValuePlace, aliases = NO_ALIASES): ReadonlyMap<string, string> {
  let known = spellings.get(aliases)
  if (known === undefined) spellings.set(aliases, (known = new WeakMap()))
  let found = known.get(place)
  if (found === undefined) known.set(place, (found = readSpellings(place, aliases)))
  return found
}

const spellings = new WeakMap<Readonly<Record<string, string>>, WeakMap<ValuePlace, ReadonlyMap<string, string>>>()

function readSpellings(place: ValuePlace, aliases: Readonly<Record<string, string>>): ReadonlyMap<string, string> {
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
 * The path in `[path](link)` or `<path>`, if that is the whole text and the link equals its label. A path that would be
 * a link again is left unchanged, so that a second repair never changes the first.
 */
function linkTarget(text: string): string | undefined {
  const target = unwrapped(text)
  return target === undefined || unwrapped(target) !== undefined ? undefined : target
}

function unwrapped(text: string): string | undefined {
  if (text.length > LONGEST_LINK) return undefined
  if (/^<[^<>\n]+>$/.test(text)) return withoutScheme(text.slice(1, -1))
  if (!text.startsWith('[') || !text.endsWith(')')) return undefined
  // Label and target may contain brackets: `app/(group)/[id].ts`.
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
