import type { AssistantPart, NativePart } from '#contracts/entry.js'
import type { JsonObject } from '#util/json.js'
import { isObject } from '#util/json.js'
import { argumentsText, customArguments } from '../wire/call-ids.js'
import { annotated, openAiCitations } from '../hosted/citations.js'
import { openAiHostedPart } from '../hosted/openai-calls.js'
import type { WireCall } from '../wire/repeated-calls.js'
import { objectsIn, stringIn, without } from '../wire/wire-fields.js'
import type { WireFields } from '../wire/wire-fields.js'
import { PROVIDER } from './models.js'

/**
 * The parts of one item of a reply's output, in order: one for each block of a message, one for any other item. Unknown
 * items are opaque, and so are those of the server itself (searches, programs, compaction). `callId` is called for tool
 * calls only.
 */
export function outputParts(item: WireFields, callId: () => string): readonly AssistantPart[] {
  switch (item['type']) {
    case 'message':
      return messageParts(item)
    case 'reasoning':
      return [{ type: 'reasoning', text: reasoningText(item), native: nativeItem(item) }]
    default:
      return [isCall(item) ? callPart(item, callId()) : hostedPart(item)]
  }
}

/** True for a call that needs a result from the client. */
export function isCall({ type }: WireFields): boolean {
  return type === 'function_call' || type === 'tool_call' || type === 'custom_tool_call'
}

/**
 * The types of items that wait for the client: calls of tools that the client executes, without their output, and requests
 * for approval.
 */
export function clientItems(parts: readonly AssistantPart[]): readonly string[] {
  const items: WireFields[] = []
  for (const part of parts) {
    const native = part.type === 'opaque' ? nativeDataOf(part) : undefined
    if (native?.kind === 'item') items.push(native.item)
  }
  if (items.length === 0) return []
  const answered = new Set(items.filter(isOutput).map(({ call_id: callId }) => callId))
  return items.filter((item) => isOfClient(item) && !answered.has(item['call_id'])).map(({ type }) => stringIn(type))
}

function isOutput({ type }: WireFields): boolean {
  return stringIn(type).endsWith('_output')
}

function isOfClient({ type, execution }: WireFields): boolean {
  return CLIENT_ITEMS.has(stringIn(type)) || (type === 'tool_search_call' && execution === 'client')
}

const CLIENT_ITEMS: ReadonlySet<string> = new Set([
  'computer_call',
  'shell_call',
  'local_shell_call',
  'apply_patch_call',
  'mcp_approval_request',
])

/** The text of a reasoning item: its summaries, then its content, as far as the provider shows it. */
export function reasoningText(item: WireFields): string {
  const texts = [...objectsIn(item['summary']), ...objectsIn(item['content'])].map((piece) => stringIn(piece['text']))
  return texts.filter((text) => text !== '').join(REASONING_SEPARATOR)
}

/** Between two pieces of reasoning. */
export const REASONING_SEPARATOR = '\n\n'

/** The provider's id of a call; empty if there is none. */
export function callIdOf(item: WireFields): string {
  return stringIn(item['call_id']) || stringIn(item['id'])
}

/** A call as the server names it; null for any other item. */
export function itemCall(item: WireFields): WireCall | null {
  return isCall(item) ? { id: callIdOf(item), name: stringIn(item['name']), text: callArguments(item) } : null
}

/** A call's arguments as JSON text. The plain text input of a custom tool becomes `{"input": …}`. */
export function callArguments(item: WireFields): string {
  if (item['type'] === 'custom_tool_call') return customArguments(stringIn(item['input']))
  return argumentsText(item['arguments'])
}

/** The blocks of a message's content, which is a string on some compatible servers. */
export function contentBlocks(message: WireFields): readonly WireFields[] {
  const { content } = message
  return typeof content === 'string' ? [{ type: 'output_text', text: content }] : objectsIn(content)
}

/** True for a block of visible text. */
export function isVisibleText(block: WireFields): boolean {
  return block['type'] === 'output_text' || block['type'] === 'text'
}

/** Of an image, the item is kept without the data, which are the part's own. */
function hostedPart(item: WireFields): AssistantPart {
  const part = openAiHostedPart(item)
  const kept = part?.type === 'image' ? { ...item, result: null } : item
  return { ...(part ?? { type: 'opaque' }), native: nativeItem(kept) }
}

function callPart(item: WireFields, callId: string): AssistantPart {
  const native = nativeItem(without(item, 'call_id', 'name', 'arguments', 'input'))
  return { type: 'tool_call', callId, name: stringIn(item['name']), arguments: callArguments(item), native }
}

function messageParts(item: WireFields): readonly AssistantPart[] {
  const message = without(item, 'content') as JsonObject
  const blocks = contentBlocks(item)
  // A message without content must still follow its reasoning when the reply is sent back.
  if (blocks.length === 0) {
    return [
      { type: 'text', text: '', native: openAiNative({ kind: 'block', block: { type: 'output_text' }, message }) },
    ]
  }
  return blocks.map((block, index) => blockPart(block, index === 0 ? message : undefined))
}

function blockPart(block: WireFields, message: JsonObject | undefined): AssistantPart {
  const opening = message === undefined ? {} : { message }
  if (!isVisibleText(block)) {
    return { type: 'opaque', native: openAiNative({ kind: 'block', block: block as JsonObject, ...opening }) }
  }
  const native = openAiNative({ kind: 'block', block: without(block, 'text') as JsonObject, ...opening })
  const text = stringIn(block['text'])
  return { type: 'text', text, ...annotated(openAiCitations(block['annotations'], text)), native }
}

function nativeItem(item: WireFields): NonNullable<AssistantPart['native']> {
  return openAiNative({ kind: 'item', item: item as JsonObject })
}

/**
 * The data that a part keeps of the reply, to be sent back in its place:
 * - `item`: a whole item of the output. For a tool call, without the fields of the part itself.
 * - `block`: a block of a message's content, without the text of the part itself. The first block of a message also has
 *   the message, without its content; the others belong to the same message.
 *
 * A refusal is an opaque part: its text is in `block.refusal`.
 */
export type NativeData =
  | { readonly kind: 'item'; readonly item: JsonObject }
  | { readonly kind: 'block'; readonly block: JsonObject; readonly message?: JsonObject }

function openAiNative(data: NativeData): NativePart {
  return { provider: PROVIDER, data: { ...data } }
}

/** The data of this provider in `part`; undefined for a part of another provider, or with invalid data. */
export function nativeDataOf({ native }: AssistantPart): NativeData | undefined {
  if (native?.provider !== PROVIDER || !isObject(native.data)) return undefined
  const { kind, item, block, message } = native.data
  if (kind === 'item' && isObject(item)) return { kind, item }
  if (kind !== 'block' || !isObject(block)) return undefined
  return { kind, block, ...(isObject(message) && { message }) }
}
