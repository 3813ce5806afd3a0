import type { HostedPart, ImagePart } from '#contracts/entry.js'
import { isObject } from '#util/json.js'
import { objectsIn, stringIn, without } from '../wire/wire-fields.js'
import type { WireFields } from '../wire/wire-fields.js'
import { hostedSource, outcome, pageLines, serverSource, textOfValue } from './calls.js'

/**
 * An item of the Responses API that is a call which the API executed, with its result; an image that it made; null for any other.
 *
 * @example
 *   openAiHostedPart({ type: 'file_search_call', id: 'fs1', queries: ['tides'], results: null, status: 'completed' })
 *   // { type: 'hosted', callId: 'fs1', name: 'file_search', source: { kind: 'server', name: 'file_search' }, arguments: '{"queries":["tides"]}' }
 */
export function openAiHostedPart(item: WireFields): HostedPart | ImagePart | null {
  const callId = stringIn(item['id'])
  const failed = item['status'] === 'failed' || item['status'] === 'incomplete'
  const part = (name: string, input: unknown, result: string): HostedPart => {
    const address = isObject(input) ? stringIn(input['url']) : ''
    const told = outcome(result, failed)
    return {
      type: 'hosted',
      callId,
      name,
      source: hostedSource(name, address || name),
      arguments: JSON.stringify(input),
      ...told,
    }
  }
  switch (item['type']) {
    case 'web_search_call': {
      const action = isObject(item['action']) ? item['action'] : {}
      return part('web_search', without(action, 'sources'), pageLines(action['sources']))
    }
    case 'file_search_call':
      return part('file_search', { queries: item['queries'] ?? [] }, fileLines(item['results']))
    case 'code_interpreter_call':
      return part('code_execution', { code: item['code'] ?? '' }, outputLines(item['outputs']))
    case 'image_generation_call':
      return imageOf(item) ?? part('image_generation', {}, '')
    case 'mcp_call': {
      const { name, server_label: server, arguments: input, output, error } = item
      const isError = error !== null && error !== undefined
      const told = outcome(textOfValue(isError ? error : output), isError || failed)
      const source = serverSource(stringIn(server))
      return { type: 'hosted', callId, name: stringIn(name), source, arguments: stringIn(input) || '{}', ...told }
    }
    default:
      return null
  }
}

function fileLines(results: unknown): string {
  return objectsIn(results)
    .map(({ filename, text }) => [stringIn(filename), stringIn(text)].filter((each) => each !== '').join(': '))
    .join('\n')
}

function outputLines(outputs: unknown): string {
  const texts = objectsIn(outputs).map(
    ({ logs, url }) => stringIn(logs) || (stringIn(url) && `[image ${stringIn(url)}]`),
  )
  return texts.filter((text) => text !== '').join('\n')
}

/** An image without its data is a call that failed, or one whose result is not shown. */
function imageOf({ result, output_format: format }: WireFields): ImagePart | null {
  const data = stringIn(result)
  return data === '' ? null : { type: 'image', data, mediaType: `image/${stringIn(format) || 'png'}` }
}
