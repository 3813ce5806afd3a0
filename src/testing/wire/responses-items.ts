import type { JsonObject } from '#util/json.js'
import { textPieces } from '../reply.js'
import { withoutNulls } from './api.js'
import type { WireReply } from './api.js'
import { sealText } from './seals.js'

/** An event of a stream, before it has its number. */
export type ResponsesEvent = JsonObject & { readonly type: string }

type Part = WireReply['parts'][number]

/** The item of the output that a part becomes. */
export function outputItem({ id, body, parts, finishReason }: WireReply, part: Part, index: number): JsonObject {
  const isCut = finishReason === 'length' && index === parts.length - 1
  const status = isCut ? 'incomplete' : 'completed'
  const itemId = (kind: string) => `${kind}_${id}${String(index).padStart(2, '0')}`
  switch (part.type) {
    case 'text':
    case 'refusal':
      return { id: itemId('msg'), type: 'message', status, role: 'assistant', content: [contentItem(part)] }
    case 'reasoning': {
      const summary = part.text === '' ? [] : [{ type: 'summary_text', text: part.text }]
      const seal = isSealWanted(body) ? { encrypted_content: sealText(part.text) } : {}
      return { id: itemId('rs'), type: 'reasoning', summary, ...seal }
    }
    case 'call': {
      const { name, callId, arguments: text } = part
      return { id: itemId('fc'), type: 'function_call', status, arguments: text, ...withoutNulls({ call_id: callId }), name }
    }
    case 'block':
      return part.data
  }
}

function isSealWanted({ include }: WireReply['body']): boolean {
  return Array.isArray(include) && include.includes('reasoning.encrypted_content')
}

function contentItem(part: Part & { type: 'text' | 'refusal' }): JsonObject {
  if (part.type === 'refusal') return { type: 'refusal', refusal: part.text }
  return { type: 'output_text', annotations: [], logprobs: [], text: part.text }
}

/** The events of an item: its addition, its pieces, and the complete item. */
export function itemEvents(part: Part, item: JsonObject, index: number): ResponsesEvent[] {
  const place = { output_index: index }
  return [
    { type: 'response.output_item.added', ...place, item: { ...item, ...blankItem(part) } },
    ...pieceEvents(part, { item_id: item['id'] ?? null, ...place }),
    { type: 'response.output_item.done', ...place, item },
  ]
}

function blankItem(part: Part): JsonObject {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return { status: 'in_progress', content: [] }
    case 'reasoning':
      return { summary: [] }
    case 'call':
      return { status: 'in_progress', arguments: '' }
    case 'block':
      return {}
  }
}

function pieceEvents(part: Part, place: JsonObject): ResponsesEvent[] {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return blockEvents(part, { ...place, content_index: 0 })
    case 'reasoning':
      return part.text === '' ? [] : summaryEvents(part.text, { ...place, summary_index: 0 })
    case 'call': {
      const type = 'response.function_call_arguments'
      const pieces = textPieces(part.arguments).map((delta) => ({ type: `${type}.delta`, ...place, delta }))
      return [...pieces, { type: `${type}.done`, ...place, arguments: part.arguments }]
    }
    case 'block':
      return []
  }
}

function blockEvents(part: Part & { type: 'text' | 'refusal' }, place: JsonObject): ResponsesEvent[] {
  const [type, field] = part.type === 'text' ? ['output_text', 'text'] : ['refusal', 'refusal']
  const block = contentItem(part)
  const logprobs = part.type === 'text' ? { logprobs: [] } : {}
  return [
    { type: 'response.content_part.added', ...place, part: { ...block, [field]: '' } },
    ...textPieces(part.text).map((delta) => ({ type: `response.${type}.delta`, ...place, delta, ...logprobs })),
    { type: `response.${type}.done`, ...place, [field]: part.text, ...logprobs },
    { type: 'response.content_part.done', ...place, part: block },
  ]
}

function summaryEvents(text: string, place: JsonObject): ResponsesEvent[] {
  const type = 'response.reasoning_summary'
  const part = { type: 'summary_text', text }
  return [
    { type: `${type}_part.added`, ...place, part: { ...part, text: '' } },
    ...textPieces(text).map((delta) => ({ type: `${type}_text.delta`, ...place, delta })),
    { type: `${type}_text.done`, ...place, text },
    { type: `${type}_part.done`, ...place, part },
  ]
}
