import { contentOf } from '#contracts/entry.js'
import type { ContentPart } from '#contracts/entry.js'
import type { Prompt } from '#harness/options.js'
import { withPlainData } from '#util/base64.js'
import { SessionError } from '../errors.js'

/** Bounds of one message. */
export interface ContentLimits {
  /** Bytes of one file. */
  readonly fileBytes: number
  /** Files and images of one message. */
  readonly files: number
}

/** Text files become labelled blocks of text, other files and images stay as they are. */
export function messageContent(prompt: Prompt, limits: ContentLimits): readonly ContentPart[] {
  const parts = contentOf(prompt)
  if (!isList(parts)) throw new SessionError('invalid_options', 'Expected a message to be a string or content parts.')
  if (parts.every((part) => part.type === 'text' && part.text.trim() === ''))
    throw new SessionError('empty_message', 'The message is empty: it has no text and no file.')
  const files = parts.filter((part) => part.type !== 'text')
  if (files.length > limits.files)
    throw new SessionError('too_many_files', `A message can have at most ${limits.files} files, got ${files.length}.`)
  for (const file of files) checkSize(file, limits.fileBytes)
  return parts
    .map(plainPart)
    .map((part) => (part.type === 'file' && 'data' in part && isTextType(part.mediaType) ? inlineText(part) : part))
}

function plainPart(part: ContentPart, index: number): ContentPart {
  const plain = withPlainData(part)
  if (plain === null)
    throw new SessionError('invalid_options', `Expected \`data\` of part ${index} of the message to be base64.`)
  return plain
}

function checkSize(part: ContentPart, most: number): void {
  if (!('data' in part)) return
  const bytes = Math.floor((part.data.length * 3) / 4)
  if (bytes <= most) return
  const name = part.type === 'file' && part.name !== undefined ? `\`${part.name}\`` : `The ${part.type}`
  throw new SessionError('file_too_large', `${name} has ${bytes} bytes: at most ${most} are allowed.`)
}

function isList(value: unknown): boolean {
  return Array.isArray(value)
}

function isTextType(mediaType: string): boolean {
  return /^(?:text\/|application\/json\b)/i.test(mediaType)
}

/** A fence is longer than any run of backticks in the text. */
function inlineText(file: Extract<ContentPart, { readonly type: 'file'; readonly data: string }>): ContentPart {
  const { data, mediaType, name } = file
  const text = Buffer.from(data, 'base64').toString()
  const longest = Math.max(0, ...Array.from(text.matchAll(/`+/g), ([run]) => run.length))
  const fence = '`'.repeat(Math.max(3, longest + 1))
  const label = name === undefined ? `A file (${mediaType})` : `The file \`${name}\` (${mediaType})`
  return { type: 'text', text: `${label}:\n${fence}\n${text}${text.endsWith('\n') ? '' : '\n'}${fence}` }
}
