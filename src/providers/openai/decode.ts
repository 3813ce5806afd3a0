import { HarnessError } from '../../contracts/errors.js'
import { textOf } from '../../contracts/entry.js'
import type { AssistantPart } from '../../contracts/entry.js'
import { isObject } from '../../util/json.js'
import { errorFromBody } from '../http/errors.js'
import type { DecodedReply, FoldOptions } from '../http/wire.js'
import { CallIds } from './call-ids.js'
import { finishOf, refusalOf } from './finish.js'
import { listOf, stringOf } from './native.js'
import type { WireObject } from './native.js'
import { partsOf } from './parts.js'
import { usageOf } from './usage.js'

/**
 * A whole reply (spec §3.5). A refusal is a reply that finishes with `refusal`: its words are no text, they stand in
 * `refusal` and in an opaque part. Throws `provider_error` for a failed response and for what is none.
 */
export function decodeReply(reply: unknown, { callIdFor }: Pick<FoldOptions, 'callIdFor'>): DecodedReply {
  const response = responseIn(reply)
  const ids = new CallIds(callIdFor)
  const parts = listOf(response['output']).flatMap((item, position) => partsOf(item, () => ids.give(position, item)))
  return decodedReply(response, parts)
}

/** A response that did not fail, whose output is `parts`. */
export function decodedReply(response: WireObject, parts: readonly AssistantPart[]): DecodedReply {
  const spoken = withOutputText(parts, response)
  return {
    parts: spoken,
    ...finishOf(response, spoken),
    ...refusalOf(spoken),
    usage: usageOf(response['usage']),
    responseId: stringOf(response['id']) || null,
    responseModel: stringOf(response['model']) || null,
    raw: response,
  }
}

/** The error of a response that failed or was cancelled; undefined for any other. */
export function failureOf(response: WireObject): HarnessError | undefined {
  const { status, error } = response
  if (status === 'cancelled') return new HarnessError('provider_error', 'The provider cancelled the response.')
  if (status !== 'failed') return undefined
  const known = isObject(error) || typeof error === 'string'
  return known ? errorFromBody(200, {}, { error }) : new HarnessError('provider_error', 'The response failed.')
}

function responseIn(reply: unknown): WireObject {
  if (!isObject(reply)) throw noResponse(reply)
  const failure = failureOf(reply)
  if (failure !== undefined) throw failure
  if (Array.isArray(reply['output']) || typeof reply['output_text'] === 'string' || isPending(reply)) return reply
  const isError = ['error', 'detail', 'message'].some((name) => reply[name] !== undefined && reply[name] !== null)
  throw isError ? errorFromBody(200, {}, reply) : noResponse(reply)
}

/** A background response that has not begun to speak. */
function isPending({ status }: WireObject): boolean {
  return status === 'queued' || status === 'in_progress'
}

function noResponse(reply: unknown): HarnessError {
  const came = reply === undefined ? 'nothing' : JSON.stringify(reply).slice(0, 200)
  return new HarnessError('provider_error', `Expected a reply of the Responses API with \`output\`, got ${came}.`)
}

/** Some servers give the text at the top level alone. */
function withOutputText(parts: readonly AssistantPart[], { output_text: text }: WireObject): readonly AssistantPart[] {
  if (typeof text !== 'string' || text === '' || textOf(parts) !== '') return parts
  return [...parts, { type: 'text', text }]
}
