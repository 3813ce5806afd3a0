import type { AssistantPart, HostedPart, ImagePart } from '#contracts/entry.js'
import { isObject } from '#util/json.js'
import { argumentsText } from '../wire/call-ids.js'
import { stringIn } from '../wire/wire-fields.js'
import type { WireFields } from '../wire/wire-fields.js'
import { hostedSource, outcome, textOfValue } from './calls.js'

/**
 * A part of the AI SDK that is a call which the provider executed, its result, or an image that it made; null for any other.
 *
 * @example
 *   aiSdkHostedPart({ type: 'tool-call', toolCallId: 's1', toolName: 'web_search', input: '{"query":"tides"}', providerExecuted: true })
 *   // { type: 'hosted', callId: 's1', name: 'web_search', source: { kind: 'web', name: 'web_search' }, arguments: '{"query":"tides"}' }
 */
export function aiSdkHostedPart(part: WireFields): HostedPart | ImagePart | null {
  const { type, toolCallId, toolName, mediaType, data } = part
  const name = stringIn(toolName)
  const call = { type: 'hosted', callId: stringIn(toolCallId), name, source: hostedSource(name) } as const
  if (type === 'tool-call') return { ...call, arguments: argumentsText(part['input']) }
  if (type === 'tool-result') return { ...call, ...outcome(textOfValue(part['result']), part['isError'] === true) }
  if (type !== 'file' || !stringIn(mediaType).startsWith('image/')) return null
  const { data: base64, url } = isObject(data) ? data : { data }
  if (stringIn(url) !== '') return { type: 'image', url: stringIn(url) }
  return stringIn(base64) === '' ? null : { type: 'image', data: stringIn(base64), mediaType: stringIn(mediaType) }
}

/**
 * The parts of a reply, its texts with the sources that came as parts of their own: each belongs to the text before it, or else to
 * the next one. `sources` are the places of these parts and what they say.
 *
 * @example
 *   withSources([{ type: 'text', text: 'High tide.' }], [[1, { url: 'https://a.example', title: 'A' }]])
 *   // [{ type: 'text', text: 'High tide.', annotations: [{ url: 'https://a.example', title: 'A', from: 0, to: 10 }] }]
 */
export function withSources(
  parts: readonly AssistantPart[],
  sources: readonly (readonly [place: number, source: WireFields])[],
): readonly AssistantPart[] {
  if (sources.length === 0) return parts
  const isText = (part: AssistantPart): boolean => part.type === 'text' && part.text !== ''
  const owners = sources.map(([place]) => {
    const before = parts.findLastIndex((part, index) => index < place && isText(part))
    return before === -1 ? parts.findIndex(isText) : before
  })
  return parts.map((part, index) => {
    if (part.type !== 'text') return part
    const annotations = sources.flatMap(([, { url, title, filename }], at) => {
      if (owners[at] !== index) return []
      const words = { url, title: stringIn(title) || filename }
      const told = Object.entries(words).filter(([, word]) => stringIn(word) !== '')
      return [{ ...Object.fromEntries(told), from: 0, to: part.text.length }]
    })
    return annotations.length === 0 ? part : { ...part, annotations }
  })
}
