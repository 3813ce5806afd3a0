import { mediaPart } from '#contracts/entry.js'
import { plainJsonText } from '#util/plain-json.js'
import type { ToolOutcome } from '#core/tools/tool-spec.js'
import type { ContentPart } from '#contracts/entry.js'
import { canonicalJson, isObject, parseJson } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import { withoutTerminalCodes } from '#util/platform/terminal.js'

/**
 * The result of `tools/call` as an outcome: the text of all blocks, then structured content as JSON, then `note`; images, audio and files
 * also as parts, which the model and the host receive whole. Text that only repeats structured content is left out. An error result is a
 * failure; with `retryErrors` it counts against the tool's retry budget.
 */
export function outcomeOfResult(result: unknown, metadata: JsonObject, retryErrors: boolean, note = ''): ToolOutcome {
  const { content: list, structuredContent, isError } = isObject(result) ? result : {}
  const blocks = (Array.isArray(list) ? list : list === undefined ? [] : [list]).map(plainBlock)
  const parts = blocks.flatMap(({ part }) => (part === undefined ? [] : [part]))
  const links = blocks.flatMap(({ link }) => (link === undefined ? [] : [link])).slice(0, MOST_LINKS)
  const isKnown = repeats(structuredContent)
  const json = structuredContent === undefined ? '' : withoutTerminalCodes(plainJsonText(structuredContent))
  const texts = [...blocks.map(({ text }) => text).filter((text) => !isKnown(text)), json].filter((text) => text !== '')
  const said = texts.join('\n') || (isError === true ? FAILED : EMPTY)
  const rest = {
    content: note === '' ? said : `${said}\n\n[${note}]`,
    metadata: { ...metadata, ...(links.length > 0 && { resource_links: links }) },
    ...(parts.length > 0 && { parts }),
  }
  if (isError !== true) return { kind: 'succeeded', ...rest }
  return { kind: 'failed', errorType: 'MCPToolError', retry: retryErrors, ...rest }
}

/** True for a text that says no more than structured content, what a library has wrapped as its `result`, or one item of that. */
function repeats(structured: unknown): (text: string) => boolean {
  if (structured === undefined) return () => false
  const wrapped = isObject(structured) ? structured['result'] : undefined
  const values = [structured, wrapped, ...(Array.isArray(wrapped) ? (wrapped as unknown[]) : [])]
  return (text) => {
    const parsed = parseJson(text)
    return values.some((value) => value === text || (parsed.ok && isPart(parsed.value, value)))
  }
}

function isPart(value: unknown, whole: unknown): boolean {
  if (!isObject(value) || !isObject(whole)) return canonicalJson(value) === canonicalJson(whole)
  return Object.entries(value).every(([name, member]) => Object.hasOwn(whole, name) && isPart(member, whole[name]))
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
const FAILED = 'The tool failed and said nothing.'
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
  if (!isObject(block)) return { text: typeof block === 'string' ? block : block === null ? '' : plainJsonText(block) }
  const { type, text, data, mimeType, resource } = block
  switch (type) {
    case 'text':
      return { text: stringOrEmpty(text) }
    case 'image':
    case 'audio':
      return mediaBlock(type, data, mimeType)
    case 'resource':
      return isObject(resource) ? readResource(resource) : { text: '[resource]' }
    case 'resource_link':
      return readLink(block)
    default: {
      const label = type === undefined ? '' : `[content of an unknown type: ${plainName(type)}]`
      return { text: [label, stringOrEmpty(text)].filter((line) => line !== '').join('\n') || label }
    }
  }
}

function plainName(type: unknown): string {
  return (typeof type === 'string' ? type : plainJsonText(type)).slice(0, 60)
}

function mediaBlock(type: 'image' | 'audio', data: unknown, mimeType: unknown): ReadBlock {
  const mediaType = mediaTypeOrBinary(mimeType)
  const label = `${type}: ${mediaType}`
  const file = filePart(label, data)
  if ('text' in file) return file
  const part = { data: file.data, mediaType }
  return { text: `[${label}]`, part: type === 'image' ? { type, ...part } : { type, ...part } }
}

function readResource({ uri, mimeType, text, blob }: Readonly<Record<string, unknown>>): ReadBlock {
  const name = `resource: ${stringOrEmpty(uri)}`
  const label = `[${name}]`
  if (typeof text === 'string') return { text: `${label}\n${text}` }
  if (typeof blob !== 'string') return { text: label }
  const mediaType = mediaTypeOrBinary(mimeType)
  const file = filePart(name, blob)
  if ('text' in file) return file
  return { text: label, part: mediaPart(file.data, mediaType, lastStep(stringOrEmpty(uri))) }
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

/** The base64 of a file as every provider takes it, or a line in its place. */
function filePart(name: string, data: unknown): { readonly data: string } | { readonly text: string } {
  if (typeof data !== 'string') return { text: `[${name}]` }
  if (data.length > LARGEST_PART) {
    return { text: `[${name}; omitted: ${Math.round((data.length * 3) / 4)} bytes is too large]` }
  }
  const plain = data.replace(/^data:[^,]{0,200},/, '').replace(/[\s=]+/g, '')
  const base64 = plain.replaceAll('-', '+').replaceAll('_', '/')
  const isSound = base64 !== '' && base64.length % 4 !== 1 && /^[A-Za-z0-9+/]+$/.test(base64)
  if (!isSound) return { text: `[${name}; omitted: its data is not base64]` }
  return { data: base64.padEnd(Math.ceil(base64.length / 4) * 4, '=') }
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
