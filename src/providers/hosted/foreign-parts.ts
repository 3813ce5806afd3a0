import type { AssistantPart, HostedPart, ImagePart, TextPart } from '#contracts/entry.js'

/**
 * What another provider executed, or an image that it made, as text: no API takes such a part of another one.
 *
 * @example
 *   foreignText({ type: 'hosted', callId: 's1', name: 'web_search', source: { kind: 'web' }, arguments: '{"query":"tides"}' })
 *   // '[web_search was run with {"query":"tides"}]'
 */
export function foreignText(part: HostedPart | ImagePart): string {
  if (part.type === 'image') return `[An image was made here: ${'url' in part ? part.url : part.mediaType}]`
  const { name, arguments: text, result, isError } = part
  const lines: string[] = []
  if (text !== undefined) lines.push(`[${name} was run with ${text}]`)
  if (result !== undefined && result !== '') lines.push(`[${name} ${isError ? 'failed' : 'answered'}]`, result)
  return lines.join('\n')
}

/**
 * A text with the addresses that it cites and does not name itself, for a model that has no form for citations.
 *
 * @example
 *   textWithSources({ type: 'text', text: 'High tide is at noon.', annotations: [{ url: 'https://a.example', from: 0, to: 21 }] })
 *   // 'High tide is at noon. [https://a.example]'
 */
export function textWithSources({ text, annotations = [] }: TextPart): string {
  const urls = new Set(annotations.flatMap(({ url }) => (url === undefined || text.includes(url) ? [] : [url])))
  return urls.size === 0 ? text : `${text.trimEnd()} [${[...urls].join('; ')}]${/\s*$/.exec(text)?.[0] ?? ''}`
}

/**
 * The parts of another provider's reply, with texts in place of what it executed, its images and its citations.
 *
 * @example
 *   foreignParts(entry.parts) // the same list if there is nothing of it
 */
export function foreignParts(parts: readonly AssistantPart[]): readonly AssistantPart[] {
  return parts.map((part) => {
    if (part.type === 'hosted' || part.type === 'image') return { type: 'text', text: `\n${foreignText(part)}\n` }
    return part.type === 'text' && part.annotations !== undefined ? { type: 'text', text: textWithSources(part) } : part
  })
}
