import { responsesFormat } from '#providers/openai/request.js'
import type { FormatOptions } from '#providers/openai/request.js'
import { UNREPORTED_USAGE } from '#contracts/entry.js'
import type {
  AssistantEntry,
  AssistantPart,
  ContentPart,
  ToolEntry,
  TranscriptEntry,
  UserEntry,
} from '#contracts/entry.js'
import type { JsonObject } from '#util/json.js'
import { expectValidRequest } from '../../support/request-schemas.js'
import { NO_CONSTANTS, decoded, response } from './replies.js'
import type { Fields } from './replies.js'

const AT = '2026-01-01T00:00:00.000Z'
export const PIXEL = 'iVBORw0KGgo='

export function user(...content: readonly (string | ContentPart)[]): UserEntry {
  const parts = content.map((part) => (typeof part === 'string' ? ({ type: 'text', text: part } as const) : part))
  return { role: 'user', id: 'e1', at: AT, content: parts }
}

export function assistant(parts: readonly AssistantPart[], provider = 'openai'): AssistantEntry {
  const own = { provider, model: 'm', finishReason: 'stop', usage: UNREPORTED_USAGE } as const
  return { role: 'assistant', id: 'e2', at: AT, parts, ...own }
}

export function replied(...output: readonly Fields[]): AssistantEntry {
  return assistant(decoded(response(output)).parts)
}

export function result(callId: string, content: ToolEntry['content'] = '{"ok":true}'): ToolEntry {
  return { role: 'tool', id: 'e3', at: AT, callId, name: 'lookup', content, isError: false }
}

/** The input items of `entries`, which the API's schemas must accept. */
export function encoded(
  entries: readonly TranscriptEntry[],
  id = 'gpt-5.5',
  options: FormatOptions = {},
): readonly JsonObject[] {
  const input = responsesFormat(id, options).encode(entries, NO_CONSTANTS)
  for (const api of ['openai-responses', 'openai-responses-sdk'] as const) {
    expectValidRequest(api, { model: id, input })
  }
  return input
}
