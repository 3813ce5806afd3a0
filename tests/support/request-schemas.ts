import { expect } from 'vitest'
import { requestProblems } from './request-validator.js'
import type { SchemaOptions } from './request-validator.js'

export type RequestApi =
  | 'openai-responses'
  | 'openai-responses-sdk'
  | 'openai-chat'
  | 'openai-chat-sdk'
  | 'openrouter-chat'
  | 'anthropic-messages'
  | 'anthropic-messages-beta'

/** Expects `body` to be valid under the provider's published schema. */
export function expectValidRequest(api: RequestApi, body: unknown, options: SchemaOptions = {}): void {
  const problems = requestProblems(api, body, options)
  if (problems.length > 0) expect.fail(`The ${api} schema rejects the request:\n${problems.join('\n')}`)
}
