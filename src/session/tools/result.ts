import { ToolResult } from '#core/tools/tool-result.js'
import { isObject, jsonObjectIn } from '#util/json.js'
import type { JsonObject } from '#util/json.js'

/** The call cannot be done as it is; the model can correct it. */
export function invalidArguments(content: string): ToolResult {
  return new ToolResult({ ok: false, content, metadata: { error_type: 'InvalidArguments', retry: true } })
}

/** True for a payload of one of the tools of this folder. */
export function isPayload<Payload extends { readonly kind: string }>(
  payload: unknown,
  kind: Payload['kind'],
): payload is Payload {
  return isObject(payload) && payload['kind'] === kind
}

/** The metadata of a stored result, from the envelope's JSON text; empty if it has none. */
export function outputMetadata(output: string): JsonObject {
  const { metadata } = jsonObjectIn(output)
  return isObject(metadata) ? metadata : {}
}
