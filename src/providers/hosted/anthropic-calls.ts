import type { AssistantPart, HostedPart } from '#contracts/entry.js'
import { isObject } from '#util/json.js'
import { objectsIn, stringIn } from '../wire/wire-fields.js'
import type { WireFields } from '../wire/wire-fields.js'
import { hostedSource, outcome, pageLines, serverSource, textOfValue } from './calls.js'

/**
 * A block of the Messages API that is a call which the API executed, or its result; null for any other. A result of a server's
 * tool names neither: `withServers` adds both.
 *
 * @example
 *   anthropicHostedPart({ type: 'server_tool_use', id: 's1', name: 'web_search', input: { query: 'tides' } })
 *   // { type: 'hosted', callId: 's1', name: 'web_search', source: { kind: 'web', name: 'web_search' }, arguments: '{"query":"tides"}' }
 */
export function anthropicHostedPart(block: WireFields): HostedPart | null {
  const { id, input, tool_use_id: callId } = block
  const [type, name] = [stringIn(block['type']), stringIn(block['name'])]
  if (type === 'server_tool_use' && !name.startsWith('tool_search'))
    return call(stringIn(id), name, { source: hostedSource(name, addressIn(input) ?? name), input })
  if (type === 'mcp_tool_use')
    return call(stringIn(id), name, { source: serverSource(stringIn(block['server_name'])), input })
  const tool = /^(.+)_tool_result$/.exec(type)?.[1]
  if (tool === undefined || tool.startsWith('tool_search') || tool === 'advisor') return null
  if (tool === 'mcp') {
    const told = outcome(textOfValue(block['content']), block['is_error'] === true)
    return { type: 'hosted', callId: stringIn(callId), name: '', source: serverSource(''), ...told }
  }
  const content = isObject(block['content']) ? block['content'] : {}
  const failed = stringIn(content['type']).endsWith('_error')
  const told = outcome(failed ? stringIn(content['error_code']) : resultText(block['content'], content), failed)
  const source = hostedSource(tool, stringIn(content['url']) || tool)
  return { type: 'hosted', callId: stringIn(callId), name: tool, source, ...told }
}

function call(
  callId: string,
  name: string,
  { source, input }: Pick<HostedPart, 'source'> & { input: unknown },
): HostedPart {
  return { type: 'hosted', callId, name, source, arguments: JSON.stringify(input ?? {}) }
}

function addressIn(input: unknown): string | undefined {
  return isObject(input) && typeof input['url'] === 'string' ? input['url'] : undefined
}

/** What people can read of a result: pages, the text of a page, the output of a program. */
function resultText(given: unknown, content: WireFields): string {
  if (Array.isArray(given)) return pageLines(given)
  const { content: document, stdout, stderr, return_code: code } = content
  if (stdout !== undefined || stderr !== undefined) {
    const files = objectsIn(document).map((file) => `[file ${stringIn(file['file_id'])}]`)
    const exit = typeof code === 'number' && code !== 0 ? [`[exit code ${code}]`] : []
    return [stringIn(stdout), stringIn(stderr), ...exit, ...files].filter((text) => text !== '').join('\n')
  }
  const source = isObject(document) && isObject(document['source']) ? document['source'] : {}
  return stringIn(source['type']) === 'text'
    ? stringIn(source['data'])
    : pageLines([{ ...content, ...titleOf(document) }])
}

function titleOf(document: unknown): WireFields {
  return isObject(document) ? { title: document['title'] } : {}
}

/**
 * The parts of a reply, results of servers' tools with the name and source of their calls.
 *
 * @example
 *   withServers(parts) // each result names the server whose tool gave it
 */
export function withServers(parts: readonly AssistantPart[]): readonly AssistantPart[] {
  if (!parts.some((part) => part.type === 'hosted' && part.name === '')) return parts
  const calls = new Map(
    parts.flatMap((part) => (part.type === 'hosted' && part.name !== '' ? [[part.callId, part] as const] : [])),
  )
  return parts.map((part) => {
    if (part.type !== 'hosted' || part.name !== '') return part
    const { name = 'connector', source = serverSource('connector') } = calls.get(part.callId) ?? {}
    return { ...part, name, source }
  })
}
