import { isObject, parseJson } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import type { ToolOutcome } from '../tool-spec.js'

/** The result of a tool call for the model: `{"ok","content","metadata"}`, the same in every API. */
export interface Envelope {
  readonly ok: boolean
  readonly content: string
  readonly metadata: JsonObject
}

/** The envelope as JSON text, its keys in the order `ok`, `content`, `metadata`. */
export function renderEnvelope({ ok, content, metadata }: Envelope): string {
  return JSON.stringify({ ok, content, metadata })
}

/** The envelope of an outcome. */
export function envelopeOf(outcome: ToolOutcome): Envelope {
  switch (outcome.kind) {
    case 'succeeded':
      return { ok: true, content: outcome.content, metadata: outcome.metadata ?? {} }
    case 'failed': {
      const { errorType, content, retry, metadata } = outcome
      return { ok: false, content, metadata: { error_type: errorType, ...(retry && { retry }), ...metadata } }
    }
    case 'cancelled':
      return { ok: false, content: outcome.reason, metadata: { error_type: 'Cancelled', ...outcome.metadata } }
    case 'rejected': {
      const reason = outcome.reason === null ? '' : `\nReason: ${outcome.reason}`
      return {
        ok: false,
        content: `A human reviewer rejected this tool call.${reason}`,
        metadata: { error_type: 'ApprovalRejected' },
      }
    }
  }
}

/**
 * The envelope in a string of any origin: a string that is no JSON object becomes the content of a failed envelope, and each
 * member that is missing or of the wrong type gets its default.
 */
export function parseEnvelope(text: string): Envelope {
  const parsed = parseJson(text)
  if (!parsed.ok || !isObject(parsed.value)) {
    return { ok: false, content: text, metadata: { error_type: 'InvalidToolOutput' } }
  }
  const { ok, content, metadata } = parsed.value
  return {
    ok: ok === true,
    content: typeof content === 'string' ? content : text,
    metadata: isObject(metadata) ? metadata : {},
  }
}
