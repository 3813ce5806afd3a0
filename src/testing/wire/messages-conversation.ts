import { partsContent } from '../conversation.js'
import type { HeardCall, MessageContent, ScriptMessage } from '../conversation.js'
import { isObject } from '#util/json.js'
import { WireRefusal } from './api.js'
import type { WireBody } from './api.js'
import { isSealed, reasoningSignature } from './seals.js'

/** The messages of a request of Anthropic's API. Throws for an order or a block that it refuses. */
export function readMessages(given: readonly WireBody[]): readonly ScriptMessage[] {
  const messages: ScriptMessage[] = []
  const ids = new Set<string>()
  let open: readonly HeardCall[] = []
  for (const [index, message] of given.entries()) {
    const { role } = message
    const place = `messages.${index}`
    if (role !== 'user' && role !== 'assistant') {
      throw new WireRefusal(`${place}.role: Input should be 'user' or 'assistant'`)
    }
    if (index === 0 && role !== 'user') throw new WireRefusal('messages: first message must use the "user" role')
    const blocks = contentBlocks(message['content'], place)
    if (role === 'user') {
      messages.push(...readUser(blocks, index, open))
      open = []
    } else {
      checkAnswered(open, index)
      const reply = readAssistant(blocks, place, ids)
      messages.push(reply)
      open = reply.calls
    }
  }
  checkAnswered(open, given.length)
  return messages
}

export function refuseMissing(place: string): never {
  throw new WireRefusal(`${place}: Field required`)
}

export function blockList(value: unknown, place: string): readonly WireBody[] {
  if (!Array.isArray(value)) throw new WireRefusal(`${place}: Input should be a valid list`)
  return value.map((each: unknown, index) => {
    if (!isObject(each)) throw new WireRefusal(`${place}.${index}: Input should be an object`)
    return each
  })
}

function contentBlocks(content: unknown, place: string): readonly WireBody[] {
  if (content === undefined) return refuseMissing(`${place}.content`)
  const blocks =
    typeof content === 'string' ? [{ type: 'text', text: content }] : blockList(content, `${place}.content`)
  if (blocks.length === 0) throw new WireRefusal(`${place}: all messages must have non-empty content`)
  for (const block of blocks) {
    if (block['type'] === 'text' && block['text'] === '') {
      throw new WireRefusal('messages: text content blocks must be non-empty')
    }
  }
  return blocks
}

/** Answers come first in a message, one for each call of the message before. */
function readUser(blocks: readonly WireBody[], index: number, open: readonly HeardCall[]): ScriptMessage[] {
  const firstOther = blocks.findIndex((block) => block['type'] !== 'tool_result')
  const results = firstOther < 0 ? blocks : blocks.slice(0, firstOther)
  const said = blocks.slice(results.length)
  const answered = new Set<string>()
  const outputs = results.map((block, at): ScriptMessage => {
    const place = `messages.${index}.content.${at}`
    const id = String(block['tool_use_id'])
    if (!open.some((call) => call.callId === id)) throw unexpectedResult(id, place)
    if (answered.has(id)) {
      const problem = `each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${id}`
      throw new WireRefusal(`${place}: ${problem}`)
    }
    answered.add(id)
    return {
      role: 'tool',
      callId: id,
      content: resultContent(block['content'], place),
      isError: block['is_error'] === true,
    }
  })
  const unanswered = open.filter((call) => !answered.has(call.callId))
  checkAnswered(unanswered, index)
  const stray = said.findIndex((block) => block['type'] === 'tool_result')
  if (stray >= 0) {
    throw unexpectedResult(String(said[stray]?.['tool_use_id']), `messages.${index}.content.${results.length + stray}`)
  }
  return said.length === 0 ? outputs : [...outputs, { role: 'user', content: partsContent(said) }]
}

function unexpectedResult(id: string, place: string): WireRefusal {
  const found = `unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}`
  const rule = 'Each `tool_result` block must have a corresponding `tool_use` block in the previous message.'
  return new WireRefusal(`${place}: ${found}. ${rule}`)
}

/** `index` is the place of the message that should have held the answers. */
function checkAnswered(open: readonly HeardCall[], index: number): void {
  if (open.length === 0) return
  const ids = open.map((call) => call.callId).join(', ')
  const found = `\`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids}`
  const rule = 'Each `tool_use` block must have a corresponding `tool_result` block in the next message.'
  throw new WireRefusal(`messages.${index - 1}: ${found}. ${rule}`)
}

function resultContent(content: unknown, place: string): MessageContent {
  if (content === undefined) return ''
  return typeof content === 'string' ? content : partsContent(blockList(content, `${place}.content`))
}

function readAssistant(
  blocks: readonly WireBody[],
  place: string,
  ids: Set<string>,
): ScriptMessage & { role: 'assistant' } {
  let text = ''
  const calls: HeardCall[] = []
  for (const [at, block] of blocks.entries()) {
    const where = `${place}.content.${at}`
    if (block['type'] === 'text') text += String(block['text'])
    else if (block['type'] === 'tool_use') calls.push(readCall(block, where, ids))
    else checkThinking(block, where)
  }
  return { role: 'assistant', text, calls }
}

function readCall({ id, name, input }: WireBody, place: string, ids: Set<string>): HeardCall {
  if (typeof id !== 'string' || !/^[a-zA-Z0-9_-]+$/.test(id)) {
    throw new WireRefusal(`${place}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`)
  }
  if (ids.has(id)) throw new WireRefusal(`${place}: \`tool_use\` ids must be unique`)
  ids.add(id)
  if (typeof name !== 'string') return refuseMissing(`${place}.tool_use.name`)
  if (!isObject(input)) throw new WireRefusal(`${place}.tool_use.input: Input should be a valid dictionary`)
  return { callId: id, name, arguments: JSON.stringify(input) }
}

/** A thinking block must come back unchanged. */
function checkThinking({ type, thinking, signature, data }: WireBody, place: string): void {
  if (type === 'redacted_thinking' && !isSealed(data)) {
    throw new WireRefusal(`${place}: Invalid \`data\` in \`redacted_thinking\` block`)
  }
  if (type !== 'thinking') return
  if (signature === undefined) return refuseMissing(`${place}.thinking.signature`)
  if (typeof thinking !== 'string' || signature !== reasoningSignature(thinking)) {
    throw new WireRefusal(`${place}: Invalid \`signature\` in \`thinking\` block`)
  }
}
