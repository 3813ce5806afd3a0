import type { AssistantPart } from '../../contracts/entry.js'
import { isObject } from '../../util/json.js'
import type { JsonObject } from '../../util/json.js'
import { isJsonObject, native } from './native.js'
import { listIn, stringIn, without } from './read.js'
import type { Fields } from './read.js'

/** The tool calls of a message. A message of the old form has one `function_call`, without an id. */
export function decodeCalls(
  message: Fields,
  provider: string,
  callIds: (given: readonly string[]) => string[],
): AssistantPart[] {
  const calls = callsIn(message)
  const ids = callIds(calls.map((call) => stringIn(call['id'])))
  return calls.map((call, index) => decodeCall(call, ids[index] ?? '', provider))
}

function callsIn(message: Fields): readonly JsonObject[] {
  const calls = listIn(message['tool_calls']).filter(isJsonObject)
  if (calls.length > 0) return calls
  const old: unknown = { function: message['function_call'] }
  return isJsonObject(old) && isObject(old['function']) && stringIn(old['function']['name']) !== '' ? [old] : []
}

function decodeCall(call: JsonObject, callId: string, provider: string): AssistantPart {
  const isCustom = call['type'] === 'custom'
  const body = isCustom ? call['custom'] : call['function']
  if (!isObject(body))
    return { type: 'opaque', native: native(provider, { form: 'message', value: { tool_calls: [call] } }) }
  const isSpecial = !['', 'function'].includes(stringIn(call['type']))
  const others = without(call, 'id', 'index', 'function', 'custom', ...(isSpecial ? [] : ['type']))
  const isPlain = !isJsonObject(others) || Object.keys(others).length === 0
  return {
    type: 'tool_call',
    callId,
    name: stringIn(body['name']),
    arguments: isCustom ? customArguments(stringIn(body['input'])) : argumentsIn(body['arguments']),
    ...(!isPlain && { native: native(provider, { form: 'call', value: others }) }),
  }
}

/** The input of a custom tool is plain text; as arguments it is a member of an object. */
export function customArguments(input: string): string {
  return JSON.stringify({ input })
}

/** Arguments as JSON text. Some servers send them as the object itself, or nothing for an empty one. */
export function argumentsIn(value: unknown): string {
  if (typeof value === 'string') return value === '' ? '{}' : value
  return value === undefined || value === null ? '{}' : JSON.stringify(value)
}

/** Ids of the calls of a whole reply: the given ones, those that are missing or repeated replaced. */
export function uniqueIds(given: readonly string[], callIdFor: (index: number) => string): string[] {
  const used = new Set<string>()
  return given.map((id, index) => uniqueId(id, index, { used, callIdFor }))
}

/** `id`, or one made for the call at `index`, that is not in `used`; it is put there. */
export function uniqueId(
  id: string,
  index: number,
  { used, callIdFor }: { readonly used: Set<string>; readonly callIdFor: (index: number) => string },
): string {
  let unique = id
  for (let at = index; unique === '' || used.has(unique); at++) unique = callIdFor(at)
  used.add(unique)
  return unique
}
