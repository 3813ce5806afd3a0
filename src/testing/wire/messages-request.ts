import { partsContent } from '../conversation.js'
import { isObject } from '#util/json.js'
import { WireRefusal } from './api.js'
import type { WireBody, WireConversation, ApiRequest } from './api.js'
import { checkToolNames } from './checks.js'
import { blockList, refuseMissing, readMessages } from './messages-conversation.js'

/** Reads a request of Anthropic's Messages API, as strictly as the API does. */
export function readMessagesRequest({ headers, body }: ApiRequest): WireConversation {
  checkHeaders(headers)
  checkRequired(body, 'model', 'string')
  checkRequired(body, 'max_tokens', 'number')
  checkSampling(headers['anthropic-version'], body)
  const tools = toolNames(body)
  const given = blockList(body['messages'] ?? refuseMissing('messages'), 'messages')
  if (given.length === 0) throw new WireRefusal('messages: at least one message is required')
  const messages = readMessages(given)
  const prefix = [body['tools'], body['system'], ...given].filter((member) => member !== undefined)
  const marks = prefix.map((member) => countCacheMarks(member))
  const found = marks.reduce((sum, count) => sum + count, 0)
  if (found > MOST_MARKS) {
    throw new WireRefusal(`A maximum of ${MOST_MARKS} blocks with cache_control may be provided. Found ${found}.`)
  }
  // Marks on the request itself let the API choose where to put them.
  const cacheable = isObject(body['cache_control']) ? prefix.length : marks.findLastIndex((count) => count > 0) + 1
  return { messages, instructions: readInstructions(body['system']), tools, body, prefix, cacheable }
}

const MOST_MARKS = 4

function checkHeaders(headers: ApiRequest['headers']): void {
  if (headers['x-api-key'] === undefined && headers['authorization'] === undefined) {
    throw new WireRefusal('x-api-key header is required', {}, 401)
  }
  if (headers['anthropic-version'] === undefined) throw new WireRefusal('anthropic-version: header is required')
}

/** Versions from 2026-10-21 on have no sampling parameters. */
function checkSampling(version: unknown, body: WireBody): void {
  if (typeof version !== 'string' || version < '2026-10-21') return
  const field = ['temperature', 'top_p', 'top_k'].find((name) => body[name] !== undefined)
  if (field !== undefined) throw new WireRefusal(`${field}: Extra inputs are not permitted`)
}

function checkRequired(body: WireBody, field: string, type: 'string' | 'number'): void {
  if (body[field] === undefined) refuseMissing(field)
  if (typeof body[field] !== type) throw new WireRefusal(`${field}: Input should be a valid ${type}`)
}

function toolNames(body: WireBody): readonly string[] {
  const tools = body['tools'] === undefined ? [] : blockList(body['tools'], 'tools')
  const names = tools.map((tool, index) => {
    const { name, type = 'custom' } = tool
    if (typeof name !== 'string') return refuseMissing(`tools.${index}.custom.name`)
    if (!/^[a-zA-Z0-9_-]{1,128}$/.test(name)) {
      throw new WireRefusal(`tools.${index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`)
    }
    const schema = tool['input_schema']
    if (type === 'custom' && (!isObject(schema) || schema['type'] !== 'object')) {
      throw new WireRefusal(`tools.${index}.custom.input_schema.type: Input should be 'object'`)
    }
    return name
  })
  const choice = body['tool_choice']
  if (isObject(choice) && names.length === 0) {
    throw new WireRefusal('tool_choice may only be specified while providing tools')
  }
  checkToolNames(names, isObject(choice) ? choice['name'] : undefined)
  return names
}

function readInstructions(system: unknown): string {
  if (system === undefined) return ''
  if (typeof system === 'string') return system
  const content = partsContent(blockList(system, 'system'))
  if (typeof content === 'string') return content
  throw new WireRefusal('system: Input should be text blocks')
}

function countCacheMarks(value: unknown): number {
  if (Array.isArray(value)) return value.reduce<number>((sum, each) => sum + countCacheMarks(each), 0)
  if (!isObject(value)) return 0
  return (isObject(value['cache_control']) ? 1 : 0) + countCacheMarks(value['content'])
}
