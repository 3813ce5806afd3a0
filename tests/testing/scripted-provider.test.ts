import { describe, expect, test } from 'vitest'
import { scriptedProvider } from 'thinharness/testing'
import type { ProviderRequest } from 'thinharness/testing'
import { chunksOf, post, textOfReply, WIRE_CASES } from '../support/wire-requests.js'

const [RESPONSES, CHAT, , MESSAGES] = WIRE_CASES

const FORMS = WIRE_CASES.flatMap((each) => [
  { name: `${each.api}, whole`, each, stream: false },
  { name: `${each.api}, streamed`, each, stream: true },
])

describe('a reply', () => {
  test.each(FORMS)('contains the text of its line ($name)', async ({ each, stream }) => {
    await using provider = await scriptedProvider()
    provider.says('Grüße, 世界 👋🏽!')
    const response = await post(provider, each, { stream })
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toMatch(stream ? /^text\/event-stream/ : /^application\/json/)
    expect(textOfReply(await response.text())).toBe('Grüße, 世界 👋🏽!')
  })

  test.each(['whole', 'event', 1, 7] as const)('has the same bytes however it is split (%s)', async (chunks) => {
    await using plain = await scriptedProvider({ chunks: 'whole' })
    await using cut = await scriptedProvider({ chunks })
    for (const provider of [plain, cut]) provider.says('Grüße, 世界!')
    const expected = await (await post(plain, MESSAGES!, { stream: true })).text()
    const arrived = await chunksOf(await post(cut, MESSAGES!, { stream: true }))
    expect(Buffer.from(arrived.chunks.join(''), 'latin1').toString()).toBe(expected)
    if (chunks !== 'whole') expect(arrived.chunks.length).toBeGreaterThan(3)
  })

  test('is the same for the same script: ids, times and prices', async () => {
    const answers: string[] = []
    for (let round = 0; round < 2; round++) {
      await using provider = await scriptedProvider()
      provider.calls('read').says('Done.')
      for (const each of [RESPONSES!, MESSAGES!]) answers.push(await (await post(provider, each)).text())
    }
    expect(answers.slice(2)).toEqual(answers.slice(0, 2))
  })

  test('may leave out a call id, repeat one, and omit its price', async () => {
    await using provider = await scriptedProvider()
    const calls = [
      { name: 'read', callId: null },
      { name: 'read', callId: 'same' },
      { name: 'read', callId: 'same' },
    ]
    provider.callsAll(calls, { usage: null })
    const reply = (await (await post(provider, CHAT!)).json()) as { choices: { message: { tool_calls: object[] } }[] }
    expect(reply).not.toHaveProperty('usage')
    const called = { type: 'function', function: { name: 'read', arguments: '{}' } }
    expect(reply.choices[0]?.message.tool_calls).toEqual([called, { id: 'same', ...called }, { id: 'same', ...called }])
  })

  test('may have an unknown block, which is sent as it is', async () => {
    await using provider = await scriptedProvider()
    const block = { type: 'search_result', found: ['a'] }
    const line = { parts: [{ type: 'block', data: block } as const, { type: 'text', text: 'So.' } as const] }
    provider.replies(line).replies(line)
    expect(await (await post(provider, MESSAGES!)).json()).toMatchObject({ content: [block, { type: 'text' }] })
    expect(await (await post(provider, RESPONSES!)).json()).toMatchObject({ output: [block, { type: 'message' }] })
  })
})

describe('an end', () => {
  test.each([
    ['stop', 'completed', 'stop', 'end_turn'],
    ['length', 'incomplete: max_output_tokens', 'length', 'max_tokens'],
    ['refusal', 'completed', 'stop', 'refusal'],
    ['content_filter', 'incomplete: content_filter', 'content_filter', 'refusal'],
    ['pause', 'incomplete: pause', 'pause', 'pause_turn'],
    ['error', 'failed: server_error', 'error', 'error'],
    ['other', 'incomplete: other', 'other', 'other'],
  ] as const)('of kind `%s` has the word of each API', async (finishReason, responses, chat, messages) => {
    await using provider = await scriptedProvider()
    provider.always({ text: 'x', finishReason })
    const words = await Promise.all(WIRE_CASES.map(async (each) => endIn(await (await post(provider, each)).json())))
    expect(words).toEqual([responses, chat, `${chat}, ${chat}`, messages])
  })

  test('may have a word of its own', async () => {
    await using provider = await scriptedProvider()
    provider.always({ text: 'x', finishReason: 'other', nativeFinishReason: 'odd' })
    const words = await Promise.all(WIRE_CASES.map(async (each) => endIn(await (await post(provider, each)).json())))
    expect(words).toEqual(['incomplete: odd', 'odd', 'other, odd', 'odd'])
  })
})

describe('a function as a line', () => {
  test.each(WIRE_CASES)('sees the conversation, whatever the API ($api)', async (each) => {
    await using provider = await scriptedProvider()
    const seen: ProviderRequest[] = []
    provider.always((request) => {
      seen.push(request)
      return 'Yes.'
    })
    await post(provider, each, { stream: true })
    expect(seen[0]).toMatchObject({
      api: each.api,
      model: 'm',
      streamed: true,
      turn: 0,
      heard: { kind: 'start', prompt: 'Hi.' },
      messages: [{ role: 'user', content: 'Hi.' }],
      instructions: '',
      tools: ['read'],
      body: { ...each.body, stream: true },
    })
  })

  test('serves many conversations at once, each by its own data', async () => {
    await using provider = await scriptedProvider()
    provider.always(async ({ messages }) => {
      await Promise.resolve()
      return `Hello, ${String(messages[0]?.role === 'user' && messages[0].content)}!`
    })
    const names = Array.from({ length: 100 }, (_, index) => `user ${index}`)
    const answers = names.map(async (name) => {
      const response = await post(provider, CHAT!, { messages: [{ role: 'user', content: name }] })
      return textOfReply(await response.text())
    })
    expect(await Promise.all(answers)).toEqual(names.map((name) => `Hello, ${name}!`))
  })

  test('that throws, or returns no reply, fails the request and is reported', async () => {
    const provider = await scriptedProvider()
    provider
      .replies(() => {
        throw new RangeError('no such row')
      })
      .replies(() => undefined as unknown as string)
    const bodies = [await (await post(provider, CHAT!)).text(), await (await post(provider, MESSAGES!)).text()]
    expect(bodies).toEqual([expect.stringContaining('no such row'), expect.stringContaining('got nothing')])
    expect(() => provider.assertDone()).toThrow(/A line failed: no such row A line failed: Expected a reply/)
    await provider.close()
  })
})

describe('a constant `always` without records', () => {
  test.each(FORMS)('yields the same bytes each time ($name)', async ({ each, stream }) => {
    await using provider = await scriptedProvider({ record: false })
    provider.always({ text: 'Fixed.', usage: { inputTokens: 3, outputTokens: 4 } })
    const first = await (await post(provider, each, { stream })).text()
    const second = await (await post(provider, each, { stream, model: undefined })).text()
    expect(textOfReply(first)).toBe('Fixed.')
    expect(second).toBe(first)
    expect(provider.requests).toEqual([])
  })
})

describe('strictness', () => {
  test.each(WIRE_CASES)('a request without a line is answered with status 400 ($api)', async (each) => {
    const provider = await scriptedProvider()
    const response = await post(provider, each)
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('has no scripted reply')])
    expect(() => provider.assertDone()).toThrow(
      'The script of the scripted provider was not followed. Request 1 (`start`) has no scripted reply; the script has 0.',
    )
    await provider.close()
  })

  test('a rejected request uses up no line, and fails `assertDone`', async () => {
    const provider = await scriptedProvider()
    provider.says('Hi.')
    expect((await post(provider, CHAT!, { messages: [] })).status).toBe(400)
    expect(textOfReply(await (await post(provider, CHAT!)).text())).toBe('Hi.')
    expect(() => provider.assertDone()).toThrow(/A request was refused: Invalid 'messages': empty array/)
    await provider.close()
  })

  test('an unknown address and a body that is not JSON are reported', async () => {
    const provider = await scriptedProvider()
    expect((await fetch(`${provider.url.chat}/models`)).status).toBe(404)
    const response = await fetch(`${provider.url.chat}/chat/completions`, { method: 'POST', body: '{"model":' })
    expect(await response.json()).toMatchObject({
      error: { message: expect.stringContaining('could not parse') as string },
    })
    expect(provider.requests.map(({ method, path, body }) => ({ method, path, body }))).toEqual([
      { method: 'GET', path: '/v1/models', body: '' },
      { method: 'POST', path: '/v1/chat/completions', body: '{"model":' },
    ])
    expect(() => provider.assertDone()).toThrow(/A request was refused: Unknown request URL: GET \/v1\/models/)
    await provider.close()
  })

  test('lines that are left fail the end of an `await using` block', async () => {
    const provider = (await scriptedProvider()).says('Hi.').fails(429).breaks('idle').drips('x')
    await expect(provider[Symbol.asyncDispose]()).rejects.toThrow(
      'Nobody asked for: says "Hi."; fails with 429; breaks with `idle`; drips.',
    )
    await expect(fetch(provider.url.chat)).rejects.toThrow()
  })

  test('requests are recorded without their keys', async () => {
    await using provider = await scriptedProvider()
    provider.says('1').says('2')
    await post(provider, MESSAGES!)
    await post(provider, CHAT!)
    expect(provider.requests.map(({ method, path, body }) => ({ method, path, body }))).toEqual([
      { method: 'POST', path: '/v1/messages', body: MESSAGES!.body },
      { method: 'POST', path: '/v1/chat/completions', body: CHAT!.body },
    ])
    expect(provider.requests[0]?.headers).toMatchObject({ 'anthropic-version': '2023-06-01' })
    expect(JSON.stringify(provider.requests)).not.toContain('secret')
  })
})

describe('faults', () => {
  test('an error status has the form of the API, or whatever body is given', async () => {
    await using provider = await scriptedProvider()
    provider
      .fails(429, { headers: { 'retry-after': '7' } })
      .fails(429, { message: 'Slow down.' })
      .fails(502, { body: '<html><title>Bad gateway</title></html>' })
      .fails(200, { body: { error: { message: 'no' } } })
    const first = await post(provider, CHAT!)
    expect([first.status, first.headers.get('retry-after'), await first.json()]).toEqual([
      429,
      '7',
      {
        error: {
          message: 'This is a scripted error of status 429.',
          type: 'requests',
          param: null,
          code: 'rate_limit_exceeded',
        },
      },
    ])
    const second = await post(provider, MESSAGES!)
    expect(await second.json()).toMatchObject({
      type: 'error',
      error: { type: 'rate_limit_error', message: 'Slow down.' },
    })
    const third = await post(provider, RESPONSES!)
    expect([third.status, third.headers.get('content-type')]).toEqual([502, 'text/html'])
    expect(await third.text()).toContain('Bad gateway')
    expect(await (await post(provider, CHAT!)).json()).toEqual({ error: { message: 'no' } })
  })

  test.each(FORMS)('a reset before the first byte ($name)', async ({ each, stream }) => {
    await using provider = await scriptedProvider()
    provider.breaks('reset', { after: 0 }).says('Then.')
    await expect(post(provider, each, { stream })).rejects.toThrow('fetch failed')
    expect(textOfReply(await (await post(provider, each, { stream })).text())).toBe('Then.')
  })

  test.each(FORMS)('a reset, and a cut, after some of the reply ($name)', async ({ each, stream }) => {
    await using provider = await scriptedProvider()
    const reply = 'One two three four five.'
    provider.says(reply).breaks('reset', { reply, after: 2 }).breaks('truncate', { reply, after: 2 })
    const whole = (await chunksOf(await post(provider, each, { stream }))).chunks.join('')
    const reset = await chunksOf(await post(provider, each, { stream }))
    const cut = await chunksOf(await post(provider, each, { stream }))
    expect(reset.error).toBeInstanceOf(TypeError)
    expect(cut.error).toBeNull()
    for (const { chunks } of [reset, cut]) {
      const length = chunks.join('').length
      expect(length).toBeGreaterThan(0)
      expect(length).toBeLessThan(whole.length)
    }
  })

  test.each(FORMS)('a piece that is not JSON ($name)', async ({ each, stream }) => {
    await using provider = await scriptedProvider()
    provider.breaks('garble')
    const { chunks, error } = await chunksOf(await post(provider, each, { stream }))
    expect(error).toBeNull()
    const texts = stream ? chunks.join('').match(/(?<=^data: )\{.*$/gm) : [chunks.join('')]
    const broken = texts?.filter((text) => !isJson(text))
    expect(broken).toHaveLength(1)
  })

  test.each(FORMS)('an error in the middle, or in place of a whole reply ($name)', async ({ each, stream }) => {
    await using provider = await scriptedProvider()
    provider.breaks('error')
    const response = await post(provider, each, { stream })
    const text = await response.text()
    expect(response.status).toBe(200)
    expect(text).toContain('This is a scripted error in a reply.')
    if (stream) expect(text.split('\n\n').length).toBe(4)
  })

  test.each([0, 2])('silence after %i events lasts until the client disconnects', async (after) => {
    await using provider = await scriptedProvider()
    provider.breaks('idle', { after })
    const abort = new AbortController()
    const pending = post(provider, MESSAGES!, { stream: true }, abort.signal)
    if (after === 0) {
      while (provider.requests.length === 0) await new Promise(setImmediate)
      provider.says('Meanwhile.')
      expect(textOfReply(await (await post(provider, CHAT!)).text())).toBe('Meanwhile.')
      abort.abort()
      await expect(pending).rejects.toThrow('aborted')
      return
    }
    const reader = (await pending).body!.getReader()
    expect(Buffer.from((await reader.read()).value ?? '').toString()).toContain('message_start')
    abort.abort()
    await expect(reader.read()).rejects.toThrow('aborted')
  })

  test('a reply arrives slowly', async () => {
    await using provider = await scriptedProvider()
    provider.drips('Slow.', { bytes: 100 })
    const { chunks } = await chunksOf(await post(provider, CHAT!, { stream: true }))
    expect(textOfReply(chunks.join(''))).toBe('Slow.')
    expect(chunks.length).toBeGreaterThan(2)
  })

  test('a client that disconnects midway disturbs nobody', async () => {
    await using provider = await scriptedProvider()
    provider.says('word '.repeat(5000)).drips('word '.repeat(500)).says('Still here.')
    for (const api of [CHAT!, MESSAGES!]) {
      const abort = new AbortController()
      const reader = (await post(provider, api, { stream: true }, abort.signal)).body!.getReader()
      await reader.read()
      abort.abort()
      await expect(reader.read()).rejects.toThrow('aborted')
    }
    expect(textOfReply(await (await post(provider, CHAT!)).text())).toBe('Still here.')
  })

  test('pieces of no bytes are rejected, not sent forever', async () => {
    await expect(scriptedProvider({ chunks: 0 })).rejects.toThrow(
      'Expected `chunks` of `scriptedProvider` to be one of `event`, `whole` or a whole number from 1 up, got `0`.',
    )
    const provider = (await scriptedProvider()).drips('x', { bytes: -1 })
    expect(await (await post(provider, CHAT!)).text()).toContain(
      'Expected `bytes` of a dripping reply to be a whole number',
    )
    await provider.close()
  })

  test('a fault may be computed by a function', async () => {
    await using provider = await scriptedProvider()
    let count = 0
    provider.always(() => (count++ === 0 ? { fault: 'status', status: 503 } : 'Up again.'))
    expect((await post(provider, CHAT!)).status).toBe(503)
    expect(textOfReply(await (await post(provider, CHAT!)).text())).toBe('Up again.')
  })
})

describe('closing', () => {
  test('`waits` holds an answer; closing ends pending ones, and may be repeated', async () => {
    const provider = await scriptedProvider()
    provider.waits(new Promise(() => undefined)).says('Never.')
    const pending = post(provider, CHAT!)
    const failed = expect(pending).rejects.toThrow('fetch failed')
    while (provider.requests.length === 0) await new Promise(setImmediate)
    await provider.close()
    await failed
    await provider.close()
  })
})

interface Ended {
  readonly status?: string
  readonly error?: { readonly code: string } | null
  readonly incomplete_details?: { readonly reason: string } | null
  readonly choices?: readonly { readonly finish_reason: string; readonly native_finish_reason?: string }[]
  readonly stop_reason?: string
}

/** Why a whole reply ended, in the API's own words. */
function endIn(reply: unknown): string {
  const { status, error, incomplete_details: details, choices, stop_reason: reason } = reply as Ended
  const [choice] = choices ?? []
  const why = error?.code ?? details?.reason
  const words = status === undefined ? [choice?.finish_reason, choice?.native_finish_reason, reason] : [status]
  return words.filter((word) => word !== undefined).join(', ') + (why === undefined ? '' : `: ${why}`)
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
