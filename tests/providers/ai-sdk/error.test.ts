import { describe, expect, test } from 'vitest'
import { HarnessError } from 'thinharness'
import { aiSdkError } from '#providers/ai-sdk/transport.js'

/** An error of the AI SDK, of any of its versions. */
function thrown(name: string, fields: object = {}, message = 'It failed.'): Error {
  return Object.assign(new Error(message), { name, ...fields })
}

const URL_OF_API = 'https://api.example.com/v1/messages'
const answered = (statusCode: number, fields: object = {}, message?: string): Error =>
  thrown('AI_APICallError', { url: URL_OF_API, statusCode, isRetryable: false, ...fields }, message)
const system = (code: string): Error => Object.assign(new Error(`connect ${code}`), { code })

describe('errors of a language model become one kind of error', () => {
  test.each<[string, unknown, Partial<HarnessError>]>([
    [
      "PR-24 an error status keeps the provider's message",
      answered(429, { responseHeaders: { 'Retry-After': '2' }, responseBody: '{"error":{"message":"Slow down."}}' }),
      { code: 'provider_error', status: 429, retryable: true, retryAfterMs: 2000, message: 'Slow down.' },
    ],
    [
      'a quota that is used up is not worth a repetition, whatever the AI SDK says',
      answered(429, { isRetryable: true, responseBody: '{"error":{"message":"Pay.","code":"insufficient_quota"}}' }),
      { status: 429, retryable: false },
    ],
    [
      'a status without a body',
      answered(503, {}, 'Service Unavailable'),
      { status: 503, retryable: true, message: 'Service Unavailable' },
    ],
    [
      'a page',
      answered(502, { responseBody: '<title>Bad Gateway</title>' }),
      { status: 502, retryable: true, message: 'Bad Gateway' },
    ],
    [
      'data in place of a body',
      answered(400, { data: { error: { message: 'No.' } } }),
      { status: 400, retryable: false, message: 'No.' },
    ],
    [
      'an error with status 200',
      answered(200, { responseBody: '{"error":{"message":"Overloaded","type":"overloaded_error"}}' }),
      { status: undefined, retryable: true, message: 'Overloaded (overloaded_error)' },
    ],
    [
      'PR-25 an answer that is not JSON is an error of the provider',
      answered(200, { responseBody: 'Hi', cause: thrown('AI_JSONParseError', {}, 'JSON parsing failed') }),
      {
        status: undefined,
        retryable: true,
        message: 'The provider sent an answer that is not JSON: JSON parsing failed',
      },
    ],
    [
      'an answer of another shape',
      answered(
        200,
        { responseBody: '{"a":1}', cause: thrown('AI_TypeValidationError', {}, 'No `id`.') },
        'Invalid JSON response',
      ),
      { retryable: false, message: 'Invalid JSON response: No `id`.' },
    ],
    [
      'PR-23 a failed connection is an error of the provider',
      thrown('AI_APICallError', { url: URL_OF_API, isRetryable: true, cause: system('ECONNREFUSED') }),
      {
        status: undefined,
        retryable: true,
        message:
          'The connection to api.example.com failed in the middle of the answer: no server is listening there (ECONNREFUSED).',
      },
    ],
    [
      'one that failed in the middle of an answer',
      answered(200, { cause: new TypeError('terminated', { cause: system('UND_ERR_SOCKET') }) }),
      { retryable: true, message: expect.stringContaining('the server closed it') as string },
    ],
    ['a dropped socket', new TypeError('terminated'), { retryable: true }],
    ['a certificate that does not fit', system('CERT_HAS_EXPIRED'), { retryable: false }],
    ['a broken event of a stream', thrown('AI_JSONParseError'), { retryable: true }],
    [
      'an error event that the AI SDK does not know',
      thrown('AI_TypeValidationError', { value: { type: 'error', code: 'server_error', message: 'Down.' } }),
      { retryable: true, message: 'Down. (server_error)' },
    ],
    ['a provider that gave up by itself', thrown('TimeoutError'), { code: 'provider_error', retryable: true }],
    [
      'a mistake in a program',
      new TypeError('x is not a function'),
      { code: 'provider_error', retryable: false, message: 'x is not a function' },
    ],
    [
      'a missing key',
      thrown('AI_LoadAPIKeyError', {}, 'Set ACME_API_KEY.'),
      { code: 'missing_key', message: expect.stringContaining('Set ACME_API_KEY.') as string },
    ],
    [
      'input that the provider does not take',
      thrown('AI_UnsupportedFunctionalityError'),
      { code: 'invalid_options', retryable: false },
    ],
    [
      "Anthropic's error in a stream",
      { type: 'overloaded_error', message: 'Overloaded' },
      { code: 'provider_error', retryable: true },
    ],
    ['one that would come again', { type: 'invalid_request_error', message: 'No.' }, { retryable: false }],
    [
      "OpenAI's error in a stream",
      {
        message: 'Slow down.',
        code: 'rate_limit',
        statusCode: 429,
        isRetryable: true,
        data: { error: { message: 'Slow down.', code: 'rate_limit_exceeded' } },
      },
      { retryable: true, message: 'Slow down. (rate_limit_exceeded)' },
    ],
    ['a text', 'It broke.', { code: 'provider_error', message: 'It broke.' }],
    ['nothing', undefined, { code: 'provider_error' }],
  ])('%s', (_name, given, expected) => {
    const error = aiSdkError(given, true)
    expect(error).toBeInstanceOf(HarnessError)
    expect(error).toMatchObject(expected)
  })

  test('a harness error stays as it is', () => {
    const error = new HarnessError('provider_error', 'x')
    expect(aiSdkError(error, false)).toBe(error)
  })

  test('the request, which holds the conversation, is not kept', () => {
    const error = aiSdkError(answered(500, { requestBodyValues: { messages: ['secret'] } }), false)
    expect(error.cause).toBeUndefined()
  })
})
