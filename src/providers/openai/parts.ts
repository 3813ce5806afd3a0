import type { AssistantPart } from '../../contracts/entry.js'
import type { JsonObject } from '../../util/json.js'
import { listOf, nativeOf, stringOf, without } from './native.js'
import type { WireObject } from './native.js'

/**
 * The parts of one item of a reply's output, in order: a message gives one for each block of its content, every other
 * item one. What we do not know is opaque, and so is what the server did itself (searches, programs, compaction).
 * `callId` is asked for a tool call only.
 */
export function partsOf(item: WireObject, callId: () => string): readonly AssistantPart[] {
  switch (item['type']) {
    case 'message':
      return messageParts(item)
    case 'reasoning':
      return [{ type: 'reasoning', text: reasoningText(item), native: itemOf(item) }]
    default:
      return [isCall(item) ? callPart(item, callId()) : { type: 'opaque', native: itemOf(item) }]
  }
}

/** Whether an item is a call that the client has to answer. */
export function isCall({ type }: WireObject): boolean {
  return type === 'function_call' || type === 'tool_call' || type === 'custom_tool_call'
}

/** The text of a reasoning item: its summaries, then its own words, as far as the provider shows them. */
export function reasoningText(item: WireObject): string {
  const texts = [...listOf(item['summary']), ...listOf(item['content'])].map((piece) => stringOf(piece['text']))
  return texts.filter((text) => text !== '').join(REASONING_SEPARATOR)
}

/** Between two pieces of reasoning. */
export const REASONING_SEPARATOR = '\n\n'

/** A call's arguments as JSON text. A custom tool's input is plain text: here it is `{"input": …}`. */
export function argumentsOf(item: WireObject): string {
  if (item['type'] === 'custom_tool_call') return JSON.stringify({ input: stringOf(item['input']) })
  const { arguments: given } = item
  const text = typeof given === 'string' ? given : JSON.stringify(given ?? {})
  return text === '' ? '{}' : text
}

/** The blocks of a message's content; a compatible server may send plain text. */
export function blocksOf(message: WireObject): readonly WireObject[] {
  const { content } = message
  return typeof content === 'string' ? [{ type: 'output_text', text: content }] : listOf(content)
}

/** Whether a block of a message is text for the reader. */
export function isText(block: WireObject): boolean {
  return block['type'] === 'output_text' || block['type'] === 'text'
}

function callPart(item: WireObject, callId: string): AssistantPart {
  const native = itemOf(without(item, 'call_id', 'name', 'arguments', 'input'))
  return { type: 'tool_call', callId, name: stringOf(item['name']), arguments: argumentsOf(item), native }
}

function messageParts(item: WireObject): readonly AssistantPart[] {
  const message = without(item, 'content')
  const blocks = blocksOf(item)
  // A message that says nothing still follows its reasoning when the reply is sent back.
  if (blocks.length === 0) {
    return [{ type: 'text', text: '', native: nativeOf({ kind: 'block', block: { type: 'output_text' }, message }) }]
  }
  return blocks.map((block, index) => blockPart(block, index === 0 ? message : undefined))
}

function blockPart(block: WireObject, message: JsonObject | undefined): AssistantPart {
  const opening = message === undefined ? {} : { message }
  if (!isText(block)) {
    return { type: 'opaque', native: nativeOf({ kind: 'block', block: block as JsonObject, ...opening }) }
  }
  const native = nativeOf({ kind: 'block', block: without(block, 'text'), ...opening })
  return { type: 'text', text: stringOf(block['text']), native }
}

function itemOf(item: WireObject): NonNullable<AssistantPart['native']> {
  return nativeOf({ kind: 'item', item: item as JsonObject })
}
