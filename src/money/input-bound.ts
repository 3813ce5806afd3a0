import type { RequestConstants } from '../contracts/model.js'
import type { AssistantPart, ContentPart, TranscriptEntry } from '../contracts/entry.js'

/** What providers add to a conversation by themselves, in tokens: words on tools, marks of roles and of ends. */
const PER_REQUEST = 1024
const PER_ENTRY = 32
/** More than any provider counts for one image; a longer file can be more, by its bytes. */
const PER_MEDIUM = 40_000

/** At most so many input tokens are in a request: no token of a text is shorter than a byte. */
export function constantsBound({ instructions, tools, structuredOutput }: RequestConstants): number {
  const told = JSON.stringify([tools, structuredOutput])
  return PER_REQUEST + bytes(instructions) + bytes(told)
}

export function entriesBound(entries: readonly TranscriptEntry[]): number {
  return entries.reduce((sum, entry) => sum + PER_ENTRY + entryBound(entry), 0)
}

function entryBound(entry: TranscriptEntry): number {
  switch (entry.role) {
    case 'user':
      return contentBound(entry.content)
    case 'assistant':
      return entry.parts.reduce((sum, part) => sum + partBound(part), 0)
    case 'tool':
      return bytes(entry.callId) + contentBound(entry.content)
  }
}

function contentBound(content: string | readonly ContentPart[]): number {
  if (typeof content === 'string') return bytes(content)
  return content.reduce((sum, part) => sum + (part.type === 'text' ? bytes(part.text) : mediumBound(part)), 0)
}

function mediumBound(part: Exclude<ContentPart, { readonly type: 'text' }>): number {
  return Math.max(PER_MEDIUM, 'data' in part ? part.data.length : 0)
}

function partBound(part: AssistantPart): number {
  const native = part.native === undefined ? 0 : bytes(JSON.stringify(part.native.data))
  const own = part.type === 'tool_call' ? bytes(part.name) + bytes(part.arguments) + bytes(part.callId) : 0
  return native + own + ('text' in part ? bytes(part.text) : 0)
}

function bytes(text: string): number {
  return Buffer.byteLength(text)
}
