import { isObject } from '#util/json.js'
import { WireRefusal } from './api.js'
import type { WireBody } from './api.js'

/** A member that must be a list of objects. */
export function checkedList(body: WireBody, field: string): readonly WireBody[] {
  const value = body[field]
  if (value === undefined) throw new WireRefusal(`Missing required parameter: '${field}'.`, { param: field })
  if (!Array.isArray(value)) {
    throw new WireRefusal(`Invalid type for '${field}': expected an array.`, { param: field, code: 'invalid_type' })
  }
  return value.map((each: unknown, index) => checkedObject(each, `${field}[${index}]`))
}

export function checkedObject(value: unknown, place: string): WireBody {
  if (isObject(value)) return value
  throw new WireRefusal(`Invalid type for '${place}': expected an object.`, { param: place, code: 'invalid_type' })
}

export function checkedText(value: unknown, place: string): string {
  if (typeof value === 'string') return value
  throw new WireRefusal(`Invalid type for '${place}': expected a string.`, { param: place, code: 'invalid_type' })
}

/** An id of a tool call, as OpenAI takes it: of at most `longest` characters. */
export function checkedCallId(value: unknown, place: string, longest: number): string {
  const id = checkedText(value, place)
  if (id.length > 0 && id.length <= longest) return id
  const problem = id.length === 0 ? 'empty string' : 'string too long'
  const expected = `a string of length 1 to ${longest}, but got length ${id.length} instead`
  throw new WireRefusal(`Invalid '${place}': ${problem}. Expected ${expected}.`, { param: place })
}

const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/

/** A tool's name, as OpenAI takes it. */
export function checkedToolName(value: unknown, place: string): string {
  const name = checkedText(value, place)
  if (TOOL_NAME.test(name)) return name
  const message = `Invalid '${place}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`
  throw new WireRefusal(message, { param: place, code: 'invalid_value' })
}

/** The names of tools, each there once; the one that must be called is among them. */
export function checkToolNames(names: readonly string[], chosen: unknown): void {
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw new WireRefusal(`tools: Tool names must be unique: '${twice}'.`, { param: 'tools' })
  if (typeof chosen === 'string' && !names.includes(chosen)) {
    throw new WireRefusal(`Tool choice '${chosen}' not found in 'tools' parameter.`, { param: 'tool_choice' })
  }
}

/** A value as a cache compares it: without its cache marks. */
export function withoutMarks(value: unknown): string {
  return JSON.stringify(value, (key, member: unknown) => (key === 'cache_control' ? undefined : member))
}

/** True for a message of the system, under either of its names. */
export function isInstruction({ role }: WireBody): boolean {
  return role === 'system' || role === 'developer'
}
