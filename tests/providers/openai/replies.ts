import type { ModelDelta, RequestConstants } from '#core/model-session.js'
import { responsesFormat } from '#providers/openai/request.js'
import { without } from '#providers/wire/wire-fields.js'
import type { DecodedReply, WireChunk } from '#providers/http/wire-format.js'

export const NO_CONSTANTS: RequestConstants = { instructions: '', tools: [], structuredOutput: null, settings: {} }

export type Fields = Readonly<Record<string, unknown>>

/** A completed response with this output. */
export function response(output: readonly unknown[], fields: Fields = {}): Fields {
  return { id: 'resp_1', object: 'response', status: 'completed', model: 'gpt-5.5-2026', output, ...fields }
}

export function message(text: string, fields: Fields = {}): Fields {
  const content = [{ type: 'output_text', text, annotations: [], logprobs: [] }]
  return { id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content, ...fields }
}

export function call(callId: string, args: string, fields: Fields = {}): Fields {
  const own = { id: `fc_${callId}`, type: 'function_call', status: 'completed', call_id: callId }
  return { ...own, name: 'lookup', arguments: args, ...fields }
}

export function reasoning(fields: Fields = {}): Fields {
  return { id: 'rs_1', type: 'reasoning', summary: [], encrypted_content: 'gAAA=', ...fields }
}

const callIdFor = (index: number): string => `call_2_${index + 1}`

export function decoded(reply: unknown): DecodedReply {
  return responsesFormat('gpt-5.5').decode(reply, { callIdFor, onDelta: undefined })
}

/** The sum of a stream of these events, and the deltas that it emitted. */
export function folded(events: readonly Fields[]): { readonly reply: DecodedReply; readonly deltas: ModelDelta[] } {
  const deltas: ModelDelta[] = []
  const fold = responsesFormat('gpt-5.5').fold({ callIdFor, onDelta: (delta) => void deltas.push(delta) })
  for (const data of events) fold.add(chunk(data))
  return { reply: fold.end(), deltas }
}

export function chunk(data: unknown): WireChunk {
  return { event: null, data }
}

/** The events that a server sends for a response: each item announced, brought in pieces, done; then the response. */
export function eventsOf(whole: Fields, pieceLength = 3): Fields[] {
  const output = whole['output'] as readonly Fields[]
  const { id, model } = whole
  return [
    { type: 'response.created', response: { id, model, status: 'in_progress', output: [] } },
    ...output.flatMap((item, index) => [
      { type: 'response.output_item.added', output_index: index, item: announced(item) },
      ...piecesOf(item, pieceLength).map((piece) => ({ output_index: index, item_id: item['id'], ...piece })),
      { type: 'response.output_item.done', output_index: index, item },
    ]),
    { type: `response.${String(whole['status'])}`, response: whole },
  ]
}

function announced(item: Fields): Fields {
  const others = without(item, 'content', 'summary', 'encrypted_content')
  if (item['type'] === 'message') return { ...others, content: [] }
  if (item['type'] === 'reasoning') return { ...others, summary: [] }
  if (item['type'] === 'function_call') return { ...others, arguments: '' }
  return item['type'] === 'custom_tool_call' ? { ...others, input: '' } : item
}

function piecesOf(item: Fields, length: number): Fields[] {
  const blocks = (list: unknown): Fields[] => (Array.isArray(list) ? (list as Fields[]) : [])
  switch (item['type']) {
    case 'message':
      return blocks(item['content']).flatMap((block, index) =>
        block['type'] === 'refusal'
          ? cut(block['refusal'], length).map((delta) => ({
              type: 'response.refusal.delta',
              content_index: index,
              delta,
            }))
          : cut(block['text'], length).map((delta) => ({
              type: 'response.output_text.delta',
              content_index: index,
              delta,
            })),
      )
    case 'reasoning':
      return [
        ...blocks(item['summary']).flatMap((block, index) =>
          cut(block['text'], length).map((delta) => ({
            type: 'response.reasoning_summary_text.delta',
            summary_index: index,
            delta,
          })),
        ),
        ...blocks(item['content']).flatMap((block, index) =>
          cut(block['text'], length).map((delta) => ({
            type: 'response.reasoning_text.delta',
            content_index: index,
            delta,
          })),
        ),
      ]
    case 'function_call':
      return cut(item['arguments'], length).map((delta) => ({ type: 'response.function_call_arguments.delta', delta }))
    case 'custom_tool_call':
      return cut(item['input'], length).map((delta) => ({ type: 'response.custom_tool_call_input.delta', delta }))
    default:
      return []
  }
}

function cut(text: unknown, length: number): string[] {
  return typeof text === 'string' ? (text.match(new RegExp(`[^]{1,${length}}`, 'g')) ?? []) : []
}

/** All deltas of a kind, joined. */
export function told(deltas: readonly ModelDelta[], kind: ModelDelta['kind'], callId?: string): string {
  return deltas
    .filter((delta) => delta.kind === kind && delta.callId === callId)
    .map(({ text }) => text)
    .join('')
}
