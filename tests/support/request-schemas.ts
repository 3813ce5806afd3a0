import { existsSync } from 'node:fs'
import { expect } from 'vitest'

/** The providers' own request schemas beside the project; absent on a machine that has only the clone. */
const VALIDATOR = new URL('../../../shared/fixtures/validate-request.mjs', import.meta.url)

export const hasRequestSchemas = existsSync(VALIDATOR)

export type RequestApi =
  | 'openai-responses'
  | 'openai-responses-sdk'
  | 'openai-chat'
  | 'openai-chat-sdk'
  | 'openrouter-chat'
  | 'anthropic-messages'
  | 'anthropic-messages-beta'

interface SchemaOptions {
  /** Top-level fields that a vendor takes beside those of the schema. */
  readonly allow?: readonly string[]
  /** The `anthropic-version` whose schema is meant. Default: the newest. */
  readonly version?: string
}

type Validate = (
  api: RequestApi,
  body: unknown,
  options: SchemaOptions,
) => { readonly ok: true } | { readonly ok: false; readonly errors: readonly string[] }

const validate = hasRequestSchemas
  ? ((await import(/* @vite-ignore */ VALIDATOR.href)) as { readonly validateRequest: Validate }).validateRequest
  : undefined

/**
 * Expects `body` to be what the provider's published schema allows. Says nothing where the schemas are absent: a test
 * that is about nothing else is to be skipped then, by `hasRequestSchemas`.
 */
export function expectValidRequest(api: RequestApi, body: unknown, options: SchemaOptions = {}): void {
  const result = validate?.(api, body, options)
  if (result?.ok === false) expect.fail(`The ${api} schema refuses the request:\n${result.errors.join('\n')}`)
}
