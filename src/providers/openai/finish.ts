import type { AssistantPart, FinishReason } from '../../contracts/entry.js'
import { isObject } from '../../util/json.js'
import { nativeDataOf, stringOf } from './native.js'
import type { WireObject } from './native.js'

interface Finish {
  readonly finishReason: FinishReason
  readonly nativeFinishReason: string | null
}

/**
 * Why a reply ended, with the API's own word: its `status`, for an incomplete reply with the reason behind a colon, as
 * in `incomplete:max_output_tokens`. `failed` and `cancelled` never come here: they are errors.
 */
export function finishOf(response: WireObject, parts: readonly AssistantPart[]): Finish {
  const status = typeof response['status'] === 'string' ? response['status'] : null
  if (status === 'incomplete') return incomplete(response['incomplete_details'])
  if (status === 'queued' || status === 'in_progress') return { finishReason: 'error', nativeFinishReason: status }
  // A compatible server may leave the status out.
  const ended = status === null || status === 'completed'
  return { finishReason: ended ? completed(parts) : 'other', nativeFinishReason: status }
}

/** Whatever the reason, and where none is given: it is not the whole reply, and so no answer. */
function incomplete(details: unknown): Finish {
  const reason = isObject(details) && typeof details['reason'] === 'string' ? details['reason'] : null
  const finishReason = INCOMPLETE_REASONS.get(reason ?? '') ?? 'error'
  return { finishReason, nativeFinishReason: reason === null ? 'incomplete' : `incomplete:${reason}` }
}

const INCOMPLETE_REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ['max_output_tokens', 'length'],
  ['max_tokens', 'length'],
  ['content_filter', 'content_filter'],
])

/** The words of a reply's refusals, where it has any. */
export function refusalOf(parts: readonly AssistantPart[]): { readonly refusal?: string } {
  const refusal = parts.map((part) => refusalIn(part) ?? '').join('')
  return refusal === '' ? {} : { refusal }
}

function completed(parts: readonly AssistantPart[]): FinishReason {
  if (parts.some((part) => refusalIn(part) !== undefined)) return 'refusal'
  if (parts.some(isCutCall)) return 'length'
  return parts.some((part) => part.type === 'tool_call') ? 'tool_calls' : 'stop'
}

/** The words of a part that is a refusal, which may be empty. */
function refusalIn(part: AssistantPart): string | undefined {
  const native = part.type === 'opaque' ? nativeDataOf(part) : undefined
  if (native?.kind !== 'block' || native.block['type'] !== 'refusal') return undefined
  return stringOf(native.block['refusal'])
}

/** A call whose arguments stop short, in a reply that calls itself complete. */
function isCutCall(part: AssistantPart): boolean {
  const native = part.type === 'tool_call' ? nativeDataOf(part) : undefined
  return native?.kind === 'item' && native.item['status'] === 'incomplete'
}
