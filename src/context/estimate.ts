import { byteLength } from '../util/bytes.js'
import type { AssistantPart, ContentPart, TranscriptEntry } from '../index.js'

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
  if (tokens === undefined) {
    tokens = PER_ENTRY + (entry.role === 'assistant' ? sum(entry.parts.map(ofPart)) : ofContent(entry.content))
    known.set(entry, tokens)
  }
  return tokens
}

/** Tokens of a string, as a rough estimate. */
export function estimateText(text: string): number {
  return Math.ceil(byteLength(text) / BYTES_PER_TOKEN)
}

function ofContent(content: string | readonly ContentPart[]): number {
  return typeof content === 'string' ? estimateText(content) : sum(content.map(ofInput))
}

function ofInput(part: ContentPart): number {
  if (part.type === 'text') return estimateText(part.text)
  return part.type === 'image' ? PER_IMAGE : PER_IMAGE + Math.ceil(part.data.length / BYTES_OF_FILE)
}

function ofPart(part: AssistantPart): number {
  switch (part.type) {
    case 'text':
      return estimateText(part.text)
    case 'tool_call':
      return estimateText(part.name) + estimateText(part.arguments)
    case 'reasoning':
    case 'opaque':
      return estimateText(JSON.stringify(part))
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}
