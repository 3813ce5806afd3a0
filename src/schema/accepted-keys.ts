import { isList, isSchema, mapSubschemas, pointerOf, pointerSteps, schemasIn } from './subschemas.js'
import type { TranscriptEntry } from '../contracts/entry.js'
import type { ToolDefinition } from '../contracts/model.js'
import { isObject, parseJson } from '../util/json.js'
import type { JsonObject, JsonSchema, JsonValue } from '../util/json.js'
import { sentKey } from './sent-keys.js'

/**
 * A tool's schema with accepted keys in place of those that Anthropic's API rejects, at any depth. A replaced property is described
 * by its own key. The tool boundary reads arguments under either key.
 */
export function withAcceptedKeys<T extends JsonSchema>(root: T): T {
  const rename = (given: JsonSchema): JsonSchema => {
    const schema = mapSubschemas(given, rename)
    const { $ref, properties, required, dependentRequired: needs, dependentSchemas: forms } = schema
    return {
      ...schema,
      ...(typeof $ref === 'string' && $ref.startsWith('#/') && { $ref: renamedPointer($ref) }),
      ...(isSchema(properties) && { properties: Object.fromEntries(Object.entries(properties).map(renamedProperty)) }),
      ...(isList(required) && { required: required.map(renamedKey) }),
      ...(isSchema(needs) && { dependentRequired: renamedMembers(needs) }),
      ...(isSchema(forms) && { dependentSchemas: renamedMembers(forms) }),
    }
  }
  // Most schemas are as they should be.
  return hasReplacedKeys(root) ? (rename(root) as T) : root
}

function hasReplacedKeys(schema: JsonSchema): boolean {
  return replacedKeys(schema).size > 0
}

function replacedKeys(schema: JsonSchema): ReadonlySet<string> {
  const found = new Set<string>()
  for (const { properties } of schemasIn(schema)) {
    for (const key of Object.keys(isSchema(properties) ? properties : {})) if (sentKey(key) !== key) found.add(key)
  }
  return found
}

/** The replaced keys of each tool that has some. Found once for a list of tools. */
const known = new WeakMap<readonly ToolDefinition[], ReadonlyMap<string, ReadonlySet<string>>>()

/**
 * Earlier calls in the keys that the model was given: a history of another provider has the tools' own ones. Keys that no
 * schema names stay.
 */
export function withSentKeys(
  entries: readonly TranscriptEntry[],
  tools: readonly ToolDefinition[],
): readonly TranscriptEntry[] {
  let keys = known.get(tools)
  if (keys === undefined) {
    const all = tools.map(({ name, parameters }) => [name, replacedKeys(parameters)] as const)
    keys = new Map(all.filter(([, found]) => found.size > 0))
    known.set(tools, keys)
  }
  const replaced = keys
  if (replaced.size === 0) return entries
  return entries.map((entry) => {
    if (entry.role !== 'assistant') return entry
    const parts = entry.parts.map((part) => {
      const own = part.type === 'tool_call' ? replaced.get(part.name) : undefined
      if (part.type !== 'tool_call' || own === undefined) return part
      return { ...part, arguments: inSentKeys(part.arguments, own) }
    })
    return { ...entry, parts }
  })
}

function inSentKeys(text: string, keys: ReadonlySet<string>): string {
  const parsed = parseJson(text)
  if (!parsed.ok || !isObject(parsed.value)) return text
  const rename = (value: JsonValue): JsonValue => {
    if (isList(value)) return value.map(rename)
    if (!isSchema(value)) return value
    const members = Object.entries(value).map(([key, member]) => [
      keys.has(key) ? sentKey(key) : key,
      rename(member ?? null),
    ])
    return Object.fromEntries(members) as JsonObject
  }
  return JSON.stringify(rename(parsed.value))
}

function renamedKey(key: JsonValue): JsonValue {
  return typeof key === 'string' ? sentKey(key) : key
}

/** Requirements of properties: the keys of the properties, and the keys that they require. */
function renamedMembers(needs: JsonSchema): JsonSchema {
  const members = Object.entries(needs).map(([key, need]) => [sentKey(key), isList(need) ? need.map(renamedKey) : need])
  return Object.fromEntries(members) as JsonSchema
}

function renamedProperty([key, schema]: [string, JsonValue | undefined]): [string, JsonValue | undefined] {
  const sent = sentKey(key)
  if (sent === key || !isSchema(schema)) return [sent, schema]
  const { description } = schema
  return [sent, { ...schema, description: typeof description === 'string' ? `${key}: ${description}` : key }]
}

/** A reference into `properties` follows their keys. */
function renamedPointer(pointer: string): string {
  const steps = pointerSteps(pointer)
  const renamed = steps.map((step, index) => (steps[index - 1] === 'properties' ? sentKey(step) : step))
  if (renamed.every((step, index) => step === steps[index])) return pointer
  return pointerOf(renamed)
}
