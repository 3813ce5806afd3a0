import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { HarnessError } from 'thinharness'
import { describe, expect, test } from 'vitest'
import { connectionError, errorFromBody } from '#providers/http/provider-errors.js'
import { PROVIDER_CASES } from '../../support/provider-cases.js'

/** The fields of an error that a caller sees. */
function seen({ code, message, status, retryable, retryAfterMs }: HarnessError): unknown {
  return { code, message, status, retryable, retryAfterMs }
}

const refusal = (status: number, body: unknown, headers: Record<string, string> = {}): HarnessError =>
  errorFromBody(status, headers, body)

test('PR-24 an error has the status and the message of the provider', () => {
  const body = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' }, request_id: 'req_1' }
  expect(seen(refusal(529, body))).toEqual({
    code: 'provider_error',
    message: 'Overloaded (overloaded_error)',
    status: 529,
    retryable: true,
    retryAfterMs: undefined,
  })
})

test.each<[string, unknown, string]>([
  ['OpenAI', { error: { message: 'No such model.', type: 'x_error', code: 'no_model' } }, 'No such model. (no_model)'],
  [
    'a code that the message names',
    { error: { message: 'Error no_model here', code: 'no_model' } },
    'Error no_model here',
  ],
  ['a numeric code', { error: { message: 'Too long.', code: 400 } }, 'Too long.'],
  ['the inner object alone', { message: 'No such model.', type: 'x_error' }, 'No such model. (x_error)'],
  ['a text as error', { error: 'model not loaded' }, 'model not loaded'],
  ['a word as error beside a message', { error: 'not_loaded', message: 'No model.' }, 'No model. (not_loaded)'],
  ['FastAPI, a text', { detail: 'Not authenticated' }, 'Not authenticated'],
  [
    'FastAPI, a list',
    { detail: [{ loc: ['body'], msg: 'field required', type: 'value_error' }] },
    'field required (value_error)',
  ],
  [
    'a list of errors',
    [{ error: { code: 400, message: 'Bad schema.', status: 'INVALID_ARGUMENT' } }],
    'Bad schema. (INVALID_ARGUMENT)',
  ],
  ['errors inside', { success: false, errors: [{ code: 7003, message: 'No route.' }] }, 'No route.'],
  ['an error in an error', { error: { error: { message: 'Inner.' } } }, 'Inner.'],
  [
    'the upstream’s words',
    { error: { message: 'Provider returned error', metadata: { raw: 'slow down' } } },
    'Provider returned error: slow down',
  ],
  ['JSON as a text', '{"error":{"message":"No such model."}}', 'No such model.'],
  ['plain text', '  upstream connect error\n', 'upstream connect error'],
  [
    'a page with a title',
    '<!DOCTYPE html><html><head><title>502 Bad\n Gateway</title></head><body><h1>x</h1>',
    '502 Bad Gateway',
  ],
  ['a page with a heading', '<html><body><h1>Sorry</h1><p>Later.</p></body></html>', 'Sorry'],
  ['a page with neither', '<div><style>p { color: red }</style>We are <b>down</b>.</div>', 'We are down .'],
  ['nothing', '', 'The provider answered with status 400.'],
  ['an empty object', {}, 'The provider answered with status 400.'],
  ['an object of another kind', { reason: 'mood' }, 'The provider answered with status 400: {"reason":"mood"}'],
  ['null', null, 'The provider answered with status 400.'],
  ['a type alone', { error: { type: 'x_error' } }, 'The provider answered with status 400: x_error'],
])('the message is found in the body: %s', (_name, body, message) => {
  expect(refusal(400, body).message).toBe(message)
})

test('an error without a status has none in its message', () => {
  expect(seen(refusal(200, { error: {} }))).toMatchObject({
    message: 'The provider reported an error: {"error":{}}',
    status: undefined,
  })
})

describe('the limits of a message', () => {
  test('it has at most 1,000 characters, and no split character', () => {
    const { message } = refusal(400, { error: { message: '😀'.repeat(5000), type: 'long_error' } })
    expect(message.length).toBeLessThanOrEqual(1000)
    expect(Buffer.from(message).toString()).toBe(message)
    expect(message.endsWith('… (long_error)')).toBe(true)
    expect(refusal(400, 'x'.repeat(5000)).message).toHaveLength(1000)
  })

  test.each([
    ['Incorrect API key provided: sk-proj-abcdefghijklmnop1234.', 'Incorrect API key provided: ***.'],
    ['Bad header "Authorization: Bearer abcdefgh12345678"', 'Bad header "Authorization: Bearer ***"'],
    ['Key gsk_aBcDeFgHiJkLmNoPqRsT is unknown', 'Key *** is unknown'],
    ['The task-force-of-many-members failed', 'The task-force-of-many-members failed'],
  ])('it shows no key: %s', (given, shown) => {
    expect(refusal(401, { error: { message: given } }).message).toBe(shown)
  })

  test('it is found within bounded nesting', () => {
    let body: unknown = { message: 'deep' }
    for (let depth = 0; depth < 10_000; depth++) body = { error: body }
    expect(refusal(500, body).status).toBe(500)
  })
})

describe('the retryability of an error', () => {
  test.each([
    [400, false],
    [401, false],
    [402, false],
    [403, false],
    [404, false],
    [408, true],
    [409, true],
    [413, false],
    [422, false],
    [425, true],
    [429, true],
    [500, true],
    [501, false],
    [502, true],
    [503, true],
    [504, true],
    [505, false],
    [520, true],
    [524, true],
    [529, true],
  ])('status %i: %s', (status, retryable) => {
    expect(refusal(status, '').retryable).toBe(retryable)
  })

  test.each([
    ['x-should-retry: true wins', 400, {}, { 'x-should-retry': 'true' }, true],
    ['x-should-retry: false wins', 503, {}, { 'x-should-retry': 'false' }, false],
    ['a quota that is used up', 429, { error: { message: 'x', code: 'insufficient_quota' } }, {}, false],
    ['a limit of the moment', 429, { error: { message: 'x', code: 'rate_limit_exceeded' } }, {}, true],
    ['a bill to be paid', 403, { error: { message: 'x', type: 'billing_error' } }, {}, false],
  ] as const)('%s', (_name, status, body, headers, retryable) => {
    expect(refusal(status, body, headers).retryable).toBe(retryable)
  })

  test.each<[object, boolean, number | undefined]>([
    [{ type: 'overloaded_error' }, true, undefined],
    [{ type: 'rate_limit_error' }, true, undefined],
    [{ type: 'api_error' }, true, undefined],
    [{ type: 'timeout_error' }, true, undefined],
    [{ code: 'server_error' }, true, undefined],
    [{ code: 'rate_limit_exceeded' }, true, undefined],
    [{}, true, undefined],
    [{ code: 502 }, true, 502],
    [{ code: '503' }, true, 503],
    [{ status_code: 400, type: 'server_error' }, false, 400],
    [{ type: 'invalid_request_error' }, false, undefined],
    [{ type: 'authentication_error' }, false, undefined],
    [{ type: 'permission_error' }, false, undefined],
    [{ type: 'not_found_error' }, false, undefined],
    [{ type: 'request_too_large' }, false, undefined],
    [{ code: 'insufficient_quota' }, false, undefined],
    [{ code: 'context_length_exceeded' }, false, undefined],
    [{ code: 'invalid_prompt' }, false, undefined],
    [{ code: 'content_filter' }, false, undefined],
  ])('an error in a reply with status 200: %j, retryable %s', (error, retryable, status) => {
    expect(seen(refusal(200, { error: { message: 'x', ...error } }))).toMatchObject({ retryable, status })
  })
})

describe('a request that is longer than the window', () => {
  test.each<[number, object]>([
    [400, { message: 'prompt is too long: 3333404 tokens > 200000 maximum', type: 'invalid_request_error' }],
    [400, { message: 'input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000' }],
    [400, { message: 'The total length of all messages is too long.', type: 'too_many_prompt_tokens' }],
    [400, { message: "This model's maximum context length is 128000 tokens.", code: 'context_length_exceeded' }],
    [400, { message: 'Your input exceeds the context window of this model. Please adjust your input and try again.' }],
    [400, { message: 'The input token count (1193213) exceeds the maximum number of tokens allowed (1048576).' }],
    [400, { message: 'Input is too long for requested model.' }],
    [400, { message: 'Prompt contains 40000 tokens, too large for model with 32768 maximum context length' }],
    [400, { message: 'Please reduce the length of the messages or completion.' }],
    [400, { message: 'the request exceeds the available context size', type: 'exceed_context_size_error' }],
    [400, { message: 'input length exceeds maximum context length' }],
    [400, { message: "This model's maximum prompt length is 131072 but the request contains 537812 tokens." }],
    [400, { message: 'too many tokens: total number of tokens in the prompt cannot exceed 4081' }],
    [500, { message: 'the input is larger than the context size', type: 'exceed_context_size_error' }],
    [200, { message: 'x', code: 'context_length_exceeded' }],
    [400, { message: 'Input length 131393 exceeds the maximum allowed input length of 131040 tokens.' }],
    [400, { message: 'Prompt too long: 5152 tokens exceeds max_seq_len 2048' }],
    [400, { message: 'Range of input length should be [1, 30720]' }],
    [500, { message: 'The number of tokens in your prompt exceeds the limit of 4096.' }],
    [422, { message: 'Sorry. Your conversation has 9000 tokens, the maximum is 8192.' }],
  ])('XC-08 is a `context_overflow`, which is not retried: %s %j', (status, error) => {
    expect(refusal(status, { error })).toMatchObject({ code: 'context_overflow', retryable: false })
  })

  test.each<[number, object]>([
    [
      429,
      { message: 'Request too large: tokens per minute limit 30000, requested 40000', code: 'rate_limit_exceeded' },
    ],
    [429, { message: 'Too many tokens, please wait before trying again.' }],
    [400, { message: 'max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens' }],
    [400, { message: 'messages: at least one message is required' }],
    [400, { message: 'max_tokens is too large: 100000. This model supports at most 16384 completion tokens.' }],
    [400, { message: 'Expected a string with maximum length 1048576, but got a string with length 1200000.' }],
    [400, { message: 'Your input needs 90 credits, which exceeds your balance.' }],
    [400, { message: "Input should be 'auto' or 'none'" }],
    [422, { message: 'Input should be less than or equal to 2' }],
    [400, { message: 'The input image exceeds the maximum of 8000 pixels.' }],
    [403, { message: 'The prompt is too long for your plan.' }],
  ])('XC-08 other errors are not: %s %j', (status, error) => {
    expect(refusal(status, { error }).code).toBe('provider_error')
  })
})

describe('a server that takes the request later', () => {
  const wait = 'Too many tokens, please wait before trying again.'

  test.each<[number, unknown]>([
    [400, { type: 'throttlingException', message: wait }],
    [503, { type: 'throttlingException', message: wait }],
    [200, { type: 'error', error: { type: 'throttlingException', message: wait } }],
    [400, { message: wait }],
    [400, { __type: 'ThrottlingException', message: wait }],
    [503, { error: { message: 'The token limit of this server is reached.' } }],
    [400, { error: { code: 'rate_limit_exceeded', message: 'The prompt is too long for the rate of tokens.' } }],
    [500, { error: { message: 'Input token limit: throttled.' } }],
    [429, { error: { code: 'context_length_exceeded', message: 'The context window is full.' } }],
    [400, 'Maximum context length of all users reached. Try again in 20 seconds.'],
  ])('is asked again, after the time that it names: %s %j', (status, body) => {
    expect(refusal(status, body, { 'retry-after': '1' })).toMatchObject({
      code: 'provider_error',
      retryable: true,
      retryAfterMs: 1000,
    })
  })

  test.each<[number, string]>([
    [401, 'Your key is wrong. Please try again.'],
    [402, 'No money: please wait for the next month.'],
    [404, 'There is no such model. Try again with another one.'],
  ])('status %i is not repeated, whatever it says: %s', (status, message) => {
    expect(refusal(status, { error: { message } })).toMatchObject({ code: 'provider_error', retryable: false })
  })
})

describe('the delay that a server asks for', () => {
  test.each<[Record<string, string>, number | undefined]>([
    [{ 'retry-after': '20' }, 20_000],
    [{ 'retry-after': '0.5' }, 500],
    [{ 'retry-after': '0' }, 0],
    [{ 'retry-after-ms': '150' }, 150],
    [{ 'retry-after-ms': '150', 'retry-after': '20' }, 150],
    [{ 'retry-after': 'Wed, 21 Oct 2015 07:28:00 GMT' }, 0],
    [{ 'retry-after': 'soon' }, undefined],
    [{ 'retry-after': '-5' }, undefined],
    [{ 'retry-after': '1e9' }, undefined],
    [{ 'retry-after': '' }, undefined],
    [{}, undefined],
  ])('%j is %s ms', (headers, retryAfterMs) => {
    expect(refusal(429, '', headers).retryAfterMs).toBe(retryAfterMs)
  })

  test('a date is counted from the clock of the server, if it tells the time', () => {
    const headers = { 'retry-after': 'Wed, 21 Oct 2015 07:28:30 GMT', date: 'Wed, 21 Oct 2015 07:28:00 GMT' }
    expect(refusal(503, '', headers).retryAfterMs).toBe(30_000)
    const odd = { 'retry-after': new Date(Date.now() + 30_000).toUTCString(), date: 'today' }
    expect(refusal(503, '', odd).retryAfterMs).toBeGreaterThan(28_000)
  })

  test('a date is counted from now', () => {
    const { retryAfterMs } = refusal(503, '', { 'retry-after': new Date(Date.now() + 30_000).toUTCString() })
    expect(retryAfterMs).toBeGreaterThan(28_000)
    expect(retryAfterMs).toBeLessThanOrEqual(30_000)
  })
})

describe('failures below HTTP', () => {
  const withCode = (code: string): Error => Object.assign(new Error(`connect ${code}`), { code })

  test.each<[Error, boolean, string]>([
    [withCode('ECONNREFUSED'), true, 'The connection to host:1 failed: no server is listening there (ECONNREFUSED).'],
    [
      new AggregateError([withCode('ECONNREFUSED')], ''),
      true,
      'The connection to host:1 failed: no server is listening there (ECONNREFUSED).',
    ],
    [
      new TypeError('fetch failed', { cause: withCode('ECONNRESET') }),
      true,
      'The connection to host:1 failed: the server closed it (ECONNRESET).',
    ],
    [
      new TypeError('terminated', { cause: new Error('other side closed') }),
      true,
      'The connection to host:1 failed: other side closed.',
    ],
    [
      withCode('DEPTH_ZERO_SELF_SIGNED_CERT'),
      false,
      'The connection to host:1 failed: connect DEPTH_ZERO_SELF_SIGNED_CERT (DEPTH_ZERO_SELF_SIGNED_CERT).',
    ],
    [withCode('EPROTO'), false, 'The connection to host:1 failed: connect EPROTO (EPROTO).'],
  ])('PR-23 a failed connection is a provider error without a status: %s', (error, retryable, message) => {
    const mapped = connectionError(error, 'host:1', false)
    expect(seen(mapped)).toEqual({
      code: 'provider_error',
      message,
      status: undefined,
      retryable,
      retryAfterMs: undefined,
    })
    expect(mapped.cause).toBe(error)
  })
})

interface RefusalCase {
  readonly response: {
    readonly status: number
    readonly headers: Record<string, string>
    readonly body?: unknown
    readonly text?: string
  }
  readonly expect: {
    readonly error: { readonly message: string; readonly retryable: boolean; readonly status: number } | null
  }
}

function recordedRefusals(): [string, RefusalCase][] {
  return readdirSync(PROVIDER_CASES, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name !== 'conversations')
    .flatMap(({ name }) => readdirSync(join(PROVIDER_CASES, name)).map((file) => join(name, file)))
    .map((file): [string, RefusalCase] => [
      file,
      JSON.parse(readFileSync(join(PROVIDER_CASES, file), 'utf8')) as RefusalCase,
    ])
    .filter(([, each]) => each.response.status >= 400)
}

describe('the recorded error responses', () => {
  test.each(recordedRefusals())('PR-24 a recorded error response keeps its status and message: %s', (_file, each) => {
    const { status, headers, body, text } = each.response
    const error = refusal(status, body ?? text, headers)
    expect(error).toMatchObject({ status: each.expect.error?.status, retryable: each.expect.error?.retryable })
    expect(error.message.startsWith(each.expect.error?.message ?? '')).toBe(true)
  })
})
