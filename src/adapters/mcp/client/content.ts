import { plainJsonText } from '#util/plain-json.js'
import type { ToolOutcome } from '#core/tools/outcome.js'
import type { ContentPart } from '#contracts/entry.js'
import { isObject } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import { withoutTerminalCodes } from '#util/terminal.js'

/**
 * The result of `tools/call` as an outcome: structured content as JSON, else the text of all blocks; images, audio and files
 * also as parts, which the model and the host receive whole. An error result is a failure; with `retryErrors` it counts
 * against the tool's retry budget.
 */
export function outcomeOfResult(result: unknown, metadata: JsonObject, retryErrors: boolean): ToolOutcome {
  const { content: list, structuredContent, isError } = isObject(result) ? result : {}
  const blocks = Array.isArray(list) ? list.map(plainBlock) : []
  const parts = blocks.flatMap(({ part }) => (part === undefined ? [] : [part]))
  const links = blocks.flatMap(({ link }) => (link === undefined ? [] : [link])).slice(0, MOST_LINKS)
  const text = blocks.map((block) => block.text).join('\n')
  const rest = {
    content: structuredContent === undefined ? text || EMPTY : withoutTerminalCodes(plainJsonText(structuredContent)),
    metadata: { ...metadata, ...(links.length > 0 && { resource_links: links }) },
    ...(parts.length > 0 && { parts }),
  }
  if (isError !== true) return { kind: 'succeeded', ...rest }
  return { kind: 'failed', errorType: 'MCPToolError', retry: retryErrors, ...rest, content: text || rest.content }
}

/** A string of a message; empty if it is missing. */
export function stringOrEmpty(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Content of a prompt or a message, as parts for a model. */
export function contentParts(content: unknown): ContentPart[] {
  const blocks = (Array.isArray(content) ? content : [content]).map(plainBlock)
  return blocks.map(({ text, part }) => part ?? { type: 'text', text })
}

const EMPTY = 'The tool ran and returned nothing.'
const MOST_LINKS = 50
/** Longest base64 of a part, in characters; a larger one is mentioned, not passed on. */
const LARGEST_PART = 8 * 1024 * 1024

/** The text of a block for the model, and its part. */
interface ReadBlock {
  readonly text: string
  readonly part?: ContentPart
  readonly link?: JsonObject
}

function plainBlock(block: unknown): ReadBlock {
  const { text, ...rest } = readBlock(block)
  return { ...rest, text: withoutTerminalCodes(text) }
}

function readBlock(block: unknown): ReadBlock {
  if (!isObject(block)) return { text: '' }
  const { type, text, data, mimeType, resource } = block
  switch (type) {
    case 'text':
      return { text: stringOrEmpty(text) }
    case 'image':
    case 'audio':
      return typeof data === 'string' ? mediaBlock(type, data, mediaTypeOrBinary(mimeType)) : { text: `[${type}]` }
    case 'resource':
      return isObject(resource) ? readResource(resource) : { text: '[resource]' }
    case 'resource_link':
      return readLink(block)
    default:
      return { text: `[content of an unknown type: ${stringOrEmpty(type).slice(0, 60)}]` }
  }
}

function mediaBlock(type: 'image' | 'audio', data: string, mediaType: string): ReadBlock {
  if (data.length > LARGEST_PART) return tooLargeBlock(`${type}: ${mediaType}`, data)
  const text = `[${type}: ${mediaType}]`
  return type === 'image' ? { text, part: { type, data, mediaType } } : { text, part: { type, data, mediaType } }
}

function readResource({ uri, mimeType, text, blob }: Readonly<Record<string, unknown>>): ReadBlock {
  const label = `[resource: ${stringOrEmpty(uri)}]`
  if (typeof text === 'string') return { text: `${label}\n${text}` }
  if (typeof blob !== 'string') return { text: label }
  const mediaType = mediaTypeOrBinary(mimeType)
  if (blob.length > LARGEST_PART) return tooLargeBlock(`resource: ${stringOrEmpty(uri)}`, blob)
  if (mediaType.startsWith('image/')) return { text: label, part: { type: 'image', data: blob, mediaType } }
  if (mediaType.startsWith('audio/')) return { text: label, part: { type: 'audio', data: blob, mediaType } }
  return { text: label, part: { type: 'file', data: blob, mediaType, name: lastStep(stringOrEmpty(uri)) } }
}

function readLink({ uri, name, description, mimeType }: Readonly<Record<string, unknown>>): ReadBlock {
  const label = [name, description].filter((each) => typeof each === 'string' && each !== '').join(': ')
  const link: JsonObject = {
    uri: stringOrEmpty(uri),
    ...(typeof name === 'string' && { name }),
    ...(typeof mimeType === 'string' && { mime_type: mimeType }),
  }
  return { text: `[resource: ${stringOrEmpty(uri)}]${label === '' ? '' : ` ${label}`}`, link }
}

function tooLargeBlock(what: string, data: string): ReadBlock {
  return { text: `[${what}; omitted: ${Math.round((data.length * 3) / 4)} bytes is too large]` }
}

function mediaTypeOrBinary(mimeType: unknown): string {
  return typeof mimeType === 'string' ? mimeType : 'application/octet-stream'
}

function lastStep(uri: string): string {
  return (
    uri
      .split(/[?#]/, 1)[0]
      ?.split('/')
      .findLast((step) => step !== '') ?? uri
  )
}
