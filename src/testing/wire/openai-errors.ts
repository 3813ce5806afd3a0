import type { JsonObject } from '#util/json.js'
import type { ErrorDetails } from './api.js'

/** The body of an error answer of OpenAI. */
export function openAiError(status: number, message: string, { param = null, code }: ErrorDetails = {}): JsonObject {
  return { error: { message, type: openAiErrorType(status), param, code: code ?? openAiErrorCode(status) } }
}

function openAiErrorType(status: number): string {
  if (status === 429) return 'requests'
  return status >= 500 ? 'server_error' : 'invalid_request_error'
}

function openAiErrorCode(status: number): string | null {
  if (status === 401) return 'invalid_api_key'
  return status === 429 ? 'rate_limit_exceeded' : null
}
