import type { AssistantEntry, AssistantPart, ToolCallPart, ToolEntry, TranscriptEntry } from '../../contracts/entry.js'
import { isObject, parseJson } from '../../util/json.js'
import type { JsonObject } from '../../util/json.js'
import type * as Wire from 'openai/resources/responses/responses'
import { calledName } from '../wire/called-name.js'
import { wireCallId } from './call-ids.js'
import { toolOutput, userContent } from './content.js'
import type { Inputs } from './content.js'
import { listOf, nativeDataOf, without } from './native.js'
import type { NativeData } from './native.js'

interface EncodeOptions {
  /** Reasoning items are sent back as they came; else their text is, where there is any (RF-07). */
  readonly reasoning: boolean
  readonly inputs: Inputs
}

/**
 * Input items for `entries`. The server is taken to know nothing: whatever is sent back holds its own
 * content, and no item but a reasoning one keeps the id and the status that it had in the reply, which servers refuse
 * to find again. What another provider said is sent as plain text.
 */
export function encodeEntries(entries: readonly TranscriptEntry[], options: EncodeOptions): readonly JsonObject[] {
  const calls = new Map<string, NativeData>()
  return entries.flatMap((entry) => {
    switch (entry.role) {
      case 'user':
        return [message('user', userContent(entry.content, options.inputs))]
      case 'assistant':
        return encodeReply(entry, options, calls)
      case 'tool':
        return [encodeResult(entry, options.inputs, calls.get(entry.callId))]
    }
  })
}

function encodeReply(
  { parts }: AssistantEntry,
  { reasoning }: EncodeOptions,
  calls: Map<string, NativeData>,
): readonly JsonObject[] {
  const items = new ItemList()
  // Reasoning with nothing behind it, as in a reply that was cut, is refused by the API.
  const followed = parts.findLastIndex((part) => part.type !== 'reasoning')
  for (const [index, part] of parts.entries()) {
    const native = nativeDataOf(part)
    if (part.type === 'tool_call' && native !== undefined) calls.set(part.callId, native)
    if (native?.kind === 'block') items.addBlock(native, part)
    else if (part.type === 'text') items.addText(part.text)
    else if (part.type === 'tool_call') items.add(encodeCall(part, native?.item))
    else if (part.type === 'opaque') items.add(native?.item)
    else items.addReasoning(part.text, reasoning && index < followed ? replayable(native?.item) : undefined)
  }
  return items.all
}

/** The items of one reply; blocks of one message are put together again. */
class ItemList {
  readonly all: JsonObject[] = []
  /** Content of the message that the next block may belong to. */
  #open: JsonObject[] | null = null

  add(item: JsonObject | undefined): void {
    if (item === undefined) return
    this.all.push(item)
    this.#open = null
  }

  addText(text: string): void {
    if (text !== '') this.add(message('assistant', text))
  }

  addReasoning(text: string, item: JsonObject | undefined): void {
    if (item !== undefined) this.add(item)
    else if (text !== '') this.addText(`<thinking>\n${text}\n</thinking>`)
  }

  addBlock({ block, message: opening }: NativeData & { kind: 'block' }, part: AssistantPart): void {
    if (opening !== undefined || this.#open === null) {
      const content: JsonObject[] = []
      this.add({ type: 'message', role: 'assistant', ...withoutNulls(without(opening ?? {}, 'id', 'status')), content })
      this.#open = content
    }
    this.#open.push(part.type === 'text' ? textBlock(part.text, block) : block)
  }
}

/** A text block as it was, with its citations; servers want the list of them, and no empty list of probabilities. */
function textBlock(text: string, block: JsonObject): JsonObject {
  const { annotations, logprobs } = block
  return {
    ...without(block, 'logprobs'),
    type: 'output_text',
    text,
    annotations: Array.isArray(annotations) ? annotations : [],
    ...(Array.isArray(logprobs) && logprobs.length > 0 && { logprobs }),
  }
}

function message(role: 'user' | 'assistant', content: string | readonly JsonObject[]): JsonObject {
  return { role, content }
}

/** Servers write null for what is not there, and do not all take it back. */
function withoutNulls(item: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(item).filter(([, value]) => value !== null))
}

/**
 * A reasoning item that holds what it says, encrypted or in the clear; one that only names what a server has stored is
 * none. `status` is refused on input.
 */
function replayable(item: JsonObject | undefined): JsonObject | undefined {
  if (item === undefined) return undefined
  const { id, encrypted_content: encrypted, summary } = item
  const content = listOf(item['content']) as readonly JsonObject[]
  const isEncrypted = typeof encrypted === 'string' && encrypted !== ''
  if (!isEncrypted && content.length === 0) return undefined
  return {
    type: 'reasoning',
    ...(typeof id === 'string' && { id }),
    summary: Array.isArray(summary) ? summary : [],
    ...(content.length > 0 && { content }),
    ...(isEncrypted && { encrypted_content: encrypted }),
  }
}

const LONGEST_NAME = 128

function encodeCall(part: ToolCallPart, item: JsonObject | undefined): JsonObject {
  const name = calledName(part.name, LONGEST_NAME)
  const own = { ...withoutNulls(without(item ?? {}, 'id', 'status', 'type')), call_id: wireCallId(part.callId), name }
  if (isCustom(item)) return { type: 'custom_tool_call', ...own, input: customInput(part.arguments) }
  return {
    type: 'function_call',
    ...own,
    arguments: part.arguments === '' ? '{}' : part.arguments,
  } satisfies Wire.ResponseFunctionToolCall
}

function encodeResult(entry: ToolEntry, inputs: Inputs, native: NativeData | undefined): JsonObject {
  const item = native?.kind === 'item' ? native.item : undefined
  const type = isCustom(item) ? 'custom_tool_call_output' : 'function_call_output'
  const output = toolOutput(entry.content, inputs)
  // A call that a program of the model made goes back to that program.
  const caller = isObject(item?.['caller']) ? { caller: item['caller'] } : {}
  return { type, call_id: wireCallId(entry.callId), output, ...caller }
}

function isCustom(item: JsonObject | undefined): boolean {
  return item?.['type'] === 'custom_tool_call'
}

/** The plain text in `{"input": …}`. */
function customInput(text: string): string {
  const parsed = parseJson(text)
  const input = parsed.ok && isObject(parsed.value) ? parsed.value['input'] : undefined
  return typeof input === 'string' ? input : text
}
