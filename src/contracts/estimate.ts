import { byteLength } from '#util/bytes.js'
import { resultForModel } from './entry.js'
import type { AssistantPart, ContentPart, TranscriptEntry } from './entry.js'

/** Bytes of text for one token: about right for English, code and Chinese alike. */
const BYTES_PER_TOKEN = 4
/** Marks of roles and ends. */
const PER_ENTRY = 6
/** A large image. */
const PER_IMAGE = 1600
/** Bytes of base64 for one token of a document or of sound. */
const BYTES_OF_FILE = 40

const known = new WeakMap<TranscriptEntry, number>()

/** Tokens of an entry, as a rough estimate without a tokenizer. */
export function estimateEntry(entry: TranscriptEntry): number {
  let tokens = known.get(entry)
  if (tokens === undefined) known.set(entry, (tokens = entryTokens(entry, estimateText)))
  return tokens
}

/** Tokens of a string, as a rough estimate. */
export function estimateText(text: string): number {
  return Math.ceil(byteLength(text) / BYTES_PER_TOKEN)
}

type OfText = (text: string) => number

/** Tokens of an entry, whose texts are counted by `ofText`. */
export function entryTokens(entry: TranscriptEntry, ofText: OfText): number {
  if (entry.role === 'assistant') return PER_ENTRY + sumNumbers(entry.parts.map((part) => ofPart(part, ofText)))
  const content = entry.role === 'tool' ? resultForModel(entry, 'prefix') : entry.content
  return (
    PER_ENTRY +
    (typeof content === 'string' ? ofText(content) : sumNumbers(content.map((part) => ofInput(part, ofText))))
  )
}

function ofInput(part: ContentPart, ofText: OfText): number {
  if (part.type === 'text') return ofText(part.text)
  return part.type === 'image' || 'id' in part ? PER_IMAGE : PER_IMAGE + Math.ceil(part.data.length / BYTES_OF_FILE)
}

function ofPart(part: AssistantPart, ofText: OfText): number {
  switch (part.type) {
    case 'text':
      return ofText(part.text)
    case 'tool_call':
      return ofText(part.name) + ofText(part.arguments)
    case 'image':
      return PER_IMAGE
    case 'hosted':
      return ofText(JSON.stringify(part.native ?? part))
    case 'reasoning':
    case 'opaque':
      return ofText(JSON.stringify(part))
  }
}

function sumNumbers(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}
