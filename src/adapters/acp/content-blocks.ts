import type { ContentBlock } from '@agentclientprotocol/sdk'
import { shownName, mediaPart } from '#contracts/entry.js'
import type { ContentPart } from '#contracts/entry.js'

/** The parts of a message out of the blocks of a prompt. Files that the editor embeds are text between tags with their address. */
export function contentParts(blocks: readonly ContentBlock[]): readonly ContentPart[] {
  return blocks.map(contentPart)
}

function contentPart(block: ContentBlock): ContentPart {
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text }
    case 'image':
      return { type: 'image', data: block.data, mediaType: block.mimeType }
    case 'audio':
      return { type: 'audio', data: block.data, mediaType: block.mimeType }
    case 'resource_link':
      return { type: 'text', text: `[${block.title ?? block.name}](${block.uri})` }
    case 'resource':
      return resourcePart(block.resource)
  }
}

function resourcePart(resource: Extract<ContentBlock, { readonly type: 'resource' }>['resource']): ContentPart {
  const { uri, mimeType } = resource
  if ('text' in resource)
    return { type: 'text', text: `<resource uri="${escapeAttribute(uri)}">\n${resource.text}\n</resource>` }
  const mediaType = mimeType ?? 'application/octet-stream'
  return mediaPart(resource.blob, mediaType, uri.split('/').at(-1))
}

function escapeAttribute(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;')
}

/** A part of a message as a block. */
export function contentBlock(part: ContentPart): ContentBlock {
  if (part.type === 'text') return { type: 'text', text: part.text }
  if ('id' in part) return { type: 'text', text: shownName(part) }
  if (!('data' in part)) return { type: 'resource_link', name: 'image', uri: part.url }
  const { data, mediaType: mimeType } = part
  if (part.type !== 'file') return { type: part.type, data, mimeType }
  const name = part.name ?? 'file'
  return { type: 'resource', resource: { blob: data, mimeType, uri: `attachment:${encodeURIComponent(name)}` } }
}
