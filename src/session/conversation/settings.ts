import type { ArgumentIssue } from '#schema/argument-issues.js'
import { invalidOptions } from '#contracts/parse.js'
import type { Schema } from '#schema/schema.js'
import { schemaProblems } from '#schema/schema-check.js'
import { isStandardSchema, jsonSchemaOf, parseTyped } from '#schema/schema.js'
import { isObject } from '#util/json.js'
import type { JsonObject, JsonSchema, JsonValue } from '#util/json.js'
import { SessionError } from '../errors.js'
import { toJson } from './message.js'

/** Stored settings that no longer fit their schema. */
export interface SettingsRepair {
  /** The whole: what still fits, defaults of the schema in place of the rest, and those of new members. */
  readonly settings: JsonObject
  /** Members whose values did not fit. */
  readonly misfits: readonly string[]
}

interface Parsed {
  readonly value: JsonObject
  readonly issues: readonly ArgumentIssue[]
}

/** The settings of threads, by their schema. */
export class Settings {
  /** Those that new threads begin with. */
  readonly first: JsonObject
  readonly #schema: Schema
  readonly #document: JsonSchema

  /** Throws `invalid_options`. */
  constructor(schema: Schema) {
    this.#schema = schema
    this.#document = jsonSchemaOf(schema, '`settings` of `Sessions`')
    this.first = defaultsOf(this.#document)
  }

  /** The members that a change stores. Throws a `SessionError` if the whole does not fit. */
  async change(stored: JsonObject, changes: JsonObject): Promise<JsonObject> {
    const { value, issues } = await this.#parse({ ...stored, ...changes })
    if (issues.length === 0)
      return membersOf(value, (name) => Object.hasOwn(changes, name) || differs(name, value, stored))
    const lines = issues.map(({ path, message }) => (path.length === 0 ? message : `${path.join('.')}: ${message}`))
    throw new SessionError('invalid_settings', `The settings do not fit: ${lines.join('; ')}.`)
  }

  /** What has to change for stored settings to fit, as far as defaults can make them fit; null if they do. */
  async repair(stored: JsonObject): Promise<SettingsRepair | null> {
    const misfits = new Set<string>()
    let current: JsonObject = { ...this.first, ...stored }
    let parsed = await this.#parse(current)
    while (parsed.issues.length > 0) {
      const name = await this.#misfitIn(current, parsed.issues, misfits)
      if (name === undefined) break
      misfits.add(name)
      current = this.#without(name, current)
      parsed = await this.#parse(current)
    }
    const fitting = parsed.issues.length === 0 ? { ...current, ...parsed.value } : current
    const names = new Set([...Object.keys(stored), ...Object.keys(fitting)])
    if (![...names].some((name) => differs(name, fitting, stored))) return null
    return { settings: fitting, misfits: [...misfits] }
  }

  async #misfitIn(
    settings: JsonObject,
    issues: readonly ArgumentIssue[],
    known: ReadonlySet<string>,
  ): Promise<string | undefined> {
    const candidates = Object.keys(settings).filter((name) => !known.has(name))
    const named = candidates.find((name) => issues.some(({ path }) => path[0] === name))
    if (named !== undefined) return named
    for (const name of candidates)
      if ((await this.#parse(this.#without(name, settings))).issues.length < issues.length) return name
    return undefined
  }

  /** With the default of a member, if it has one. */
  #without(name: string, settings: JsonObject): JsonObject {
    const { [name]: _, ...others } = settings
    return Object.hasOwn(this.first, name) ? { ...others, [name]: this.first[name] } : others
  }

  async #parse(settings: JsonObject): Promise<Parsed> {
    if (isStandardSchema(this.#schema)) {
      const parsed = await parseTyped(this.#schema, settings)
      if (!parsed.ok) return { value: settings, issues: parsed.issues }
      return { value: isObject(parsed.value) ? toJson(parsed.value) : settings, issues: [] }
    }
    const problems = await schemaProblems(this.#document, settings)
    if (problems.kind === 'broken') throw invalidOptions(`\`settings\` of \`Sessions\`: ${problems.message}`)
    return { value: settings, issues: problems.kind === 'invalid' ? problems.issues : [] }
  }
}

function defaultsOf({ properties }: JsonSchema): JsonObject {
  if (!isObject(properties)) return {}
  return Object.fromEntries(
    Object.entries(properties).flatMap(([name, member]): [string, JsonValue][] =>
      isObject(member) && member['default'] !== undefined ? [[name, member['default']]] : [],
    ),
  )
}

function membersOf(settings: JsonObject, isChosen: (name: string) => boolean): JsonObject {
  return Object.fromEntries(Object.entries(settings).filter(([name]) => isChosen(name)))
}

function differs(name: string, settings: JsonObject, stored: JsonObject): boolean {
  return JSON.stringify(settings[name]) !== JSON.stringify(stored[name])
}
