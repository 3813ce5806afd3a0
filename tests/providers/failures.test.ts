import { expect, test } from 'vitest'
import { Harness, HarnessError, memoryLog } from 'thinharness'
import type { Model, RunEvent } from 'thinharness'
import { anthropic, fromAiSdk, openai, openaiChat } from 'thinharness/providers'
import type { ProviderFailure } from 'thinharness/providers'
import { createOpenAI } from '@ai-sdk/openai'
import { errorOf } from './support.js'

/** Refusals of real servers. A body may be text. */
const REFUSALS: readonly (readonly [ProviderFailure, number, unknown])[] = [
  ['quota', 429, { error: { message: 'You exceeded your current quota.', code: 'insufficient_quota' } }],
  ['quota', 429, 'insufficient_quota'],
  [
    'quota',
    400,
    { error: { type: 'invalid_request_error', message: 'Your credit balance is too low to access this.' } },
  ],
  ['quota', 402, { error: { message: 'Insufficient Balance' } }],
  ['rate_limit', 429, 'not json'],
  ['rate_limit', 400, { error: { message: 'Rate limit exceeded for this minute.' } }],
  ['rate_limit', 400, { __type: 'ThrottlingException', message: 'Slow.' }],
  ['overloaded', 503, '<html><head><title>Service Unavailable</title></head></html>'],
  ['overloaded', 529, { error: { type: 'overloaded_error', message: 'Overloaded' } }],
  ['overloaded', 200, { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }],
  ['overloaded', 200, { error: { message: 'The server is overloaded', code: 503 } }],
  ['overloaded', 500, { error: { type: 'overloaded_error', message: 'Overloaded' } }],
  ['server', 500, { error: { message: 'An unexpected error occurred. Please try again later.' } }],
  ['server', 409, { error: { message: 'Locked.' } }],
  ['server', 200, { error: { message: 'Something broke.' } }],
  ['timeout', 504, '<html><head><title>504 Gateway Time-out</title></head></html>'],
  ['timeout', 200, { error: { type: 'timeout_error', message: 'Took too long.' } }],
  ['context', 400, { error: { message: 'prompt is too long: 210000 tokens > 200000 maximum' } }],
  ['context', 400, { error: { code: 'context_length_exceeded', message: 'Shorten it.' } }],
  ['content', 400, { error: { code: 'content_filter', message: 'The response was filtered.' } }],
  ['content', 400, { error: { type: 'invalid_request_error', message: 'Output blocked by content filtering policy' } }],
  ['content', 403, { error: { code: 403, message: 'This model requires moderation. Your input was flagged.' } }],
  ['auth', 401, { error: { message: 'Unauthorized.' } }],
  ['auth', 400, { error: { status: 'INVALID_ARGUMENT', message: 'API key not valid. Please pass a valid API key.' } }],
  ['auth', 200, { error: { type: 'authentication_error', message: 'No.' } }],
  ['not_found', 404, { error: { message: 'model "x" not found, try pulling it first' } }],
  ['not_found', 400, { error: { message: 'Model Not Exist' } }],
  ['not_found', 400, { error: { message: 'x/y is not a valid model ID' } }],
  ['invalid', 400, { error: { message: 'tools.9.custom.input_schema: no oneOf at the top level' } }],
  ['invalid', 413, { error: { type: 'request_too_large', message: 'Request exceeds the maximum size' } }],
  ['invalid', 422, { detail: [{ msg: 'field required', type: 'value_error' }] }],
  ['invalid', 200, { error: { type: 'invalid_request_error', message: 'No.' } }],
]

type Fetch = typeof globalThis.fetch

const WIRES: Readonly<Record<string, (fetch: Fetch) => Model>> = {
  openai: (fetch) => openai('gpt-5.5', { apiKey: 'any', fetch, maxRetries: 0 }),
  openaiChat: (fetch) => openaiChat('gpt-4.1', { apiKey: 'any', fetch, maxRetries: 0 }),
  anthropic: (fetch) => anthropic('claude-sonnet-5', { apiKey: 'any', fetch, maxRetries: 0 }),
  fromAiSdk: (fetch) => fromAiSdk(createOpenAI({ apiKey: 'any', fetch })('gpt-5.5'), { maxRetries: 0 }),
}

function answering(status: number, body: unknown): Fetch {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return () => Promise.resolve(new Response(text, { status, headers: { 'content-type': 'application/json' } }))
}

test.each(Object.entries(WIRES))('a refusal has its class on every wire: %s', async (_wire, make) => {
  const seen: unknown[] = []
  for (const [, status, body] of REFUSALS) {
    const harness = new Harness({ model: make(answering(status, body)), builtinTools: [] })
    const { failure } = await errorOf(harness.run('Go.'))
    seen.push([failure, status, body])
  }
  expect(seen).toEqual(REFUSALS)
})

test('the class of a failure is in the last event, in the log, and in the error of a run that is recovered', async () => {
  const log = memoryLog()
  const model = openai('gpt-5.5', { apiKey: 'any', fetch: answering(503, 'Down.'), maxRetries: 0 })
  const harness = new Harness({ model, log, builtinTools: [] })
  const events: RunEvent[] = []
  const stream = harness.stream('Go.')
  const error = await errorOf(
    (async () => {
      for await (const event of stream) events.push(event)
      return await stream.result
    })(),
  )
  expect(error.failure).toBe('overloaded')
  expect(events.at(-1)).toMatchObject({ kind: 'run_failed', failure: 'overloaded' })
  const again = await errorOf(harness.recover(stream.runId))
  expect(again.failure).toBe('overloaded')
})

test('an error of a model of one’s own gets the class of its status, or the one that it names', () => {
  expect(new HarnessError('provider_error', 'Slow down.', { status: 429 }).failure).toBe('rate_limit')
  expect(new HarnessError('provider_error', 'No.', { failure: 'content' }).failure).toBe('content')
  expect(new HarnessError('provider_error', 'No.').failure).toBe('unknown')
  expect(new HarnessError('context_overflow', 'No.').failure).toBe('context')
  expect(new HarnessError('missing_key', 'No.').failure).toBe('auth')
  expect(new HarnessError('limit_reached', 'No.').failure).toBeUndefined()
})
