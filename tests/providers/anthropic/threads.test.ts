import fc from 'fast-check'
import { expect, test } from 'vitest'
import { defineTool, Harness } from 'thinharness'
import type { HarnessOptions } from 'thinharness'
import { anthropic } from 'thinharness/providers'
import type { AnthropicOptions } from 'thinharness/providers'
import { scriptedProvider } from 'thinharness/testing'
import { rounds } from '../../support/length.js'
import { expectValidRequest } from '../../support/request-schemas.js'

interface Message {
  readonly role: string
  readonly content: string | readonly { readonly type: string; readonly id?: string; readonly tool_use_id?: string }[]
}

interface Body {
  readonly thread?: { readonly type: string; readonly previous_message_id?: string }
  readonly system?: unknown
  readonly tools?: unknown
  readonly stream?: boolean
  readonly messages: readonly Message[]
}

const lookup = defineTool({
  name: 'lookup',
  description: 'Looks it up.',
  parameters: { type: 'object', properties: { n: { type: 'string' } } },
  handler: () => 'found',
})

function harnessOf(options: AnthropicOptions, more: HarnessOptions = {}): Harness {
  const model = anthropic('claude-sonnet-5', { apiKey: 'k', threads: true, maxRetries: 0, ...options })
  const limits = { modelRequests: 210, toolCalls: 210 }
  return new Harness({ model, tools: [lookup], builtinTools: [], limits, instructions: 'Be brief.', ...more })
}

/** What a server does with one request. */
type Deed = 'answers' | 'forgets' | 'is_continued' | 'differs' | 'loses' | 'is_unknown'

const REFUSALS: Readonly<Record<Exclude<Deed, 'answers' | 'loses'>, readonly [number, string, string?]>> = {
  forgets: [404, 'The conversation is not held any more.', 'thread_not_found'],
  is_continued: [400, 'The response has already been continued.', 'thread_already_continued'],
  differs: [400, 'The request has differing field(s): output_config.', 'thread_fingerprint_mismatch'],
  is_unknown: [400, 'thread: Extra inputs are not permitted'],
}

/** Message threads, following their documentation: a server that holds each conversation until it is continued. */
class ThreadStage {
  readonly bodies: Body[] = []
  readonly headers: Headers[] = []
  /** The whole conversation of each request that was answered. */
  readonly conversations: (readonly string[])[] = []
  readonly bytes: number[] = []
  readonly #kept = new Map<string, readonly string[]>()
  readonly #turns: number
  readonly #deeds: Deed[]

  constructor(turns: number, deeds: readonly Deed[] = []) {
    this.#turns = turns
    this.#deeds = [...deeds]
  }

  readonly fetch: typeof globalThis.fetch = async (url, init) => {
    const request = new Request(url, init)
    const text = await request.text()
    const body = JSON.parse(text) as Body
    this.bodies.push(body)
    this.headers.push(request.headers)
    const { thread, messages } = body
    const deed = this.#deeds.shift() ?? 'answers'
    const continues = thread?.type === 'continue'
    const earlier = continues ? this.#kept.get(thread.previous_message_id ?? '') : []
    this.#kept.clear()
    if (thread !== undefined && deed === 'is_unknown') return refusal(deed)
    if (earlier === undefined || (continues && deed === 'forgets')) return refusal('forgets')
    if (continues && (deed === 'is_continued' || deed === 'differs')) return refusal(deed)
    if (continues) expect(body).not.toHaveProperty('system')
    const conversation = [...earlier, ...messages.flatMap(words)]
    this.conversations.push(conversation)
    this.bytes.push(text.length)
    const results = conversation.filter((each) => each.startsWith('result')).length
    const id = `toolu_${String(results).padStart(4, '0')}`
    const call = { type: 'tool_use', id, name: 'lookup', input: { n: String(results).padStart(4, '0') } }
    const isLast = results === this.#turns - 1
    const message = {
      ...{ id: `msg_${String(this.conversations.length).padStart(4, '0')}`, type: 'message', role: 'assistant' },
      ...{ model: 'claude-sonnet-5', content: isLast ? [{ type: 'text', text: 'Done.' }] : [call] },
      ...{ stop_reason: isLast ? 'end_turn' : 'tool_use', usage: { input_tokens: 1, output_tokens: 1 } },
    }
    if (thread !== undefined && deed !== 'loses')
      this.#kept.set(message.id, [...conversation, ...words({ role: 'assistant', content: message.content })])
    return Response.json(message)
  }
}

function refusal(deed: keyof typeof REFUSALS): Response {
  const [status, message, code] = REFUSALS[deed]
  const details = code === undefined ? {} : { details: { error_code: code } }
  return Response.json({ type: 'error', error: { type: 'invalid_request_error', message, ...details } }, { status })
}

function words({ role, content }: Message): readonly string[] {
  if (typeof content === 'string') return [role]
  return content.map((block) =>
    block.type === 'tool_use'
      ? `call ${block.id}`
      : block.type === 'tool_result'
        ? `result ${block.tool_use_id}`
        : role,
  )
}

function expectedAt(turn: number): readonly string[] {
  const ids = Array.from({ length: turn }, (_, index) => `toolu_${String(index).padStart(4, '0')}`)
  return ['user', ...ids.flatMap((id) => [`call ${id}`, `result ${id}`])]
}

test('a thread is created with the whole conversation, and continued with the new messages only', async () => {
  const stage = new ThreadStage(3)
  expect((await harnessOf({ fetch: stage.fetch }).run('Go.')).text).toBe('Done.')

  const [first, second, third] = stage.bodies
  expect(first).toMatchObject({
    thread: { type: 'create' },
    system: [{ text: 'Be brief.' }],
    tools: [{ name: 'lookup' }],
  })
  expect(second).toMatchObject({ thread: { type: 'continue', previous_message_id: 'msg_0001' } })
  expect(third).toMatchObject({ thread: { type: 'continue', previous_message_id: 'msg_0002' } })
  for (const { system, tools, messages } of [second!, third!]) {
    expect([system, tools]).toEqual([undefined, undefined])
    expect(messages).toMatchObject([{ role: 'user', content: [{ type: 'tool_result' }] }])
  }
  expect(stage.conversations).toEqual([0, 1, 2].map(expectedAt))
  for (const headers of stage.headers) {
    expect(headers.get('anthropic-beta')).toBe('message-threads-2026-08-12')
    expect(headers.get('anthropic-version')).toBe('2026-10-21')
  }
  for (const body of stage.bodies) expectValidRequest('anthropic-messages-beta', body, { version: '2026-10-21' })
})

test('the header of threads joins the beta features of the caller', async () => {
  const stage = new ThreadStage(1)
  await harnessOf({ fetch: stage.fetch, headers: { 'anthropic-beta': 'context-1m-2025-08-07' } }).run('Go.')
  expect(stage.headers[0]!.get('anthropic-beta')).toBe('context-1m-2025-08-07,message-threads-2026-08-12')
})

test('turn 200 sends at most twice the bytes of turn 2', async () => {
  const stage = new ThreadStage(200)
  await harnessOf({ fetch: stage.fetch }).run('Go.')
  expect(stage.bytes).toHaveLength(200)
  expect(stage.bytes[199]! / stage.bytes[1]!).toBeLessThanOrEqual(2)
})

test.each(['forgets', 'is_continued', 'differs'] as const)(
  'a server that %s gets the whole conversation at once, in a new thread, and it is reported',
  async (deed) => {
    const stage = new ThreadStage(3, ['answers', deed])
    const run = harnessOf({ fetch: stage.fetch }).stream('Go.')
    const retries: unknown[] = []
    for await (const event of run) if (event.kind === 'transport_retry') retries.push(event)
    expect((await run.result).text).toBe('Done.')
    expect(stage.bodies.map(({ thread }) => thread?.type)).toEqual(['create', 'continue', 'create', 'continue'])
    expect(stage.conversations).toEqual([0, 1, 2].map(expectedAt))
    expect(retries).toMatchObject([{ withdrawn: false, delayMs: 0 }])
  },
)

test('a server without threads gets the whole conversation each time', async () => {
  const stage = new ThreadStage(3, ['is_unknown'])
  expect((await harnessOf({ fetch: stage.fetch }).run('Go.')).text).toBe('Done.')
  expect(stage.bodies.map(({ thread }) => thread?.type)).toEqual(['create', undefined, undefined, undefined])
  expect(stage.headers.at(-1)!.get('anthropic-beta')).toBeNull()
  expect(stage.conversations).toEqual([0, 1, 2].map(expectedAt))
})

test('after threads that are lost at random each request that is answered continues the right conversation', async () => {
  const deed = fc.constantFrom<Deed>('answers', 'answers', 'forgets', 'is_continued', 'differs', 'loses', 'is_unknown')
  await fc.assert(
    fc.asyncProperty(fc.array(deed, { maxLength: 10 }), async (deeds) => {
      const stage = new ThreadStage(6, deeds)
      expect((await harnessOf({ fetch: stage.fetch }).run('Go.')).text).toBe('Done.')
      expect(stage.conversations).toEqual([0, 1, 2, 3, 4, 5].map(expectedAt))
    }),
    rounds(40),
  )
})

test('a reply that pauses goes on in its thread without a new message', async () => {
  const bodies: Body[] = []
  const fetch: typeof globalThis.fetch = async (url, init) => {
    bodies.push((await new Request(url, init).json()) as Body)
    const isFirst = bodies.length === 1
    return Response.json({
      ...{ id: `msg_${bodies.length}`, type: 'message', role: 'assistant', model: 'claude-sonnet-5' },
      content: [{ type: 'text', text: isFirst ? 'Looking.' : 'Done.' }],
      stop_reason: isFirst ? 'pause_turn' : 'end_turn',
      usage: { input_tokens: 1, output_tokens: 1 },
    })
  }
  expect((await harnessOf({ fetch }).run('Go.')).text).toContain('Done.')
  expect(bodies.map(({ thread, messages }) => [thread?.previous_message_id, messages.length])).toEqual([
    [undefined, 1],
    ['msg_1', 0],
  ])
  expectValidRequest('anthropic-messages-beta', bodies[1], { version: '2026-10-21' })
})

test('the scripted provider keeps threads as strictly as the API', async () => {
  await using provider = await scriptedProvider()
  provider.calls('lookup', { n: '1' }).calls('lookup', { n: '2' }).says('Done.')
  const result = await harnessOf({ baseUrl: provider.url.messages }).run('Go.')
  expect(result.text).toBe('Done.')
  expect(provider.requests.map(({ body }) => (body as Body).thread?.type)).toEqual(['create', 'continue', 'continue'])
  expect(provider.requests.map(({ body }) => (body as Body).messages.length)).toEqual([1, 1, 1])
})
