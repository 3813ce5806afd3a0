import { expect, test } from 'vitest'
import { Harness } from 'thinharness'
import type { RequestConstants } from 'thinharness'
import { anthropic } from '#providers/anthropic/index.js'
import type { AssistantEntry, TranscriptEntry } from '#contracts/entry.js'
import type { JsonObject } from '#util/json.js'
import { expectValidRequest } from '../../support/request-schemas.js'
import { CONSTANTS, user } from './support.js'

const CODE = { type: 'code_execution_20260120', name: 'code_execution' }
const RUN = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'code_execution', input: { code: 'x = 1' } }
const RAN = {
  type: 'code_execution_tool_result',
  tool_use_id: 'srvtoolu_1',
  content: { type: 'code_execution_result', stdout: '', stderr: '', return_code: 0, content: [] },
}
const TEXT = { type: 'text', text: 'Done.' }
const FIRST = { id: 'container_1', expires_at: '2026-01-01T01:00:00Z' }

interface Asked {
  readonly settings?: RequestConstants['settings']
  readonly between?: readonly TranscriptEntry[]
  readonly streamed?: boolean
  readonly stopReason?: string
}

const OFFERED = { providerOptions: { anthropic: { tools: [CODE] } } }

/** Bodies of two requests, the first of them answered with this content in this container, and the entry of that reply. */
async function twoRequests(
  content: readonly JsonObject[],
  container: JsonObject | null,
  { settings = OFFERED, between = [], streamed = false, stopReason = 'end_turn' }: Asked = {},
): Promise<{ readonly bodies: readonly JsonObject[]; readonly entry: AssistantEntry }> {
  const bodies: JsonObject[] = []
  const whole = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content, stop_reason: stopReason }
  const reply = { ...whole, stop_sequence: null, container, usage: { input_tokens: 1, output_tokens: 2 } }
  const events = [
    { type: 'message_start', message: { ...reply, content: [], container: null, stop_reason: null } },
    ...content.flatMap((block, index) => [
      { type: 'content_block_start', index, content_block: block },
      { type: 'content_block_stop', index },
    ]),
    { type: 'message_delta', delta: { stop_reason: stopReason, stop_sequence: null, container }, usage: reply.usage },
    { type: 'message_stop' },
  ]
  const sse = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
  const answer = async (_url: unknown, init?: RequestInit): Promise<Response> => {
    const body = (await new Response(init?.body).json()) as JsonObject
    bodies.push(body)
    expectValidRequest('anthropic-messages', body, { version: '2023-06-01' })
    return body['stream'] === true
      ? new Response(sse, { headers: { 'content-type': 'text/event-stream' } })
      : Response.json(reply)
  }
  const session = anthropic('claude-sonnet-5', { apiKey: 'k', fetch: answer }).openSession()
  const constants = { ...CONSTANTS, settings }
  const options = { generation: 0, signal: new AbortController().signal, ...(streamed && { onDelta: () => undefined }) }
  const start: TranscriptEntry[] = [user('Go.')]
  const turn = await session.turn(start, constants, options)
  const entry = { ...turn.entry, id: 'e2', at: start[0]!.at }
  await session.turn([...start, entry, ...between], constants, options)
  return { bodies, entry }
}

test.each([false, true])(
  'the container that a program ran in is named in the next request (streamed: %j)',
  async (streamed) => {
    const { bodies, entry } = await twoRequests([RUN, RAN, TEXT], FIRST, { streamed, between: [user('Again.')] })
    expect(bodies.map(({ container }) => container)).toEqual([undefined, 'container_1'])
    expect(bodies[1]!['messages']).toMatchObject([{ role: 'user' }, { content: [RUN, RAN, TEXT] }, { role: 'user' }])
    expect((bodies[1]!['messages'] as { content: unknown[] }[])[1]!.content).toHaveLength(3)
    expect(entry.native).toEqual({ provider: 'anthropic', data: { container: FIRST } })
  },
)

test('a reply that the provider paused continues in its container', async () => {
  const { bodies } = await twoRequests([RUN, RAN], FIRST, { stopReason: 'pause_turn' })
  expect(bodies[1]!['container']).toBe('container_1')
})

test.each<[string, readonly JsonObject[], JsonObject | null, Asked]>([
  ['there was none', [TEXT], null, {}],
  ['the request offers no tools of the provider', [RUN, RAN, TEXT], FIRST, { settings: {} }],
  ['it is over', [RUN, RAN, TEXT], FIRST, { between: [{ ...user('Again.'), at: '2026-01-01T01:00:00.000Z' }] }],
])('no container is named if %s', async (_why, content, container, asked) => {
  const { bodies } = await twoRequests(content, container, { between: [user('Again.')], ...asked })
  expect(bodies[1]).not.toHaveProperty('container')
})

test.each<[string, JsonObject | string, unknown]>([
  [
    'skills stay',
    { skills: [{ type: 'anthropic', skill_id: 'pptx' }] },
    { skills: [{ type: 'anthropic', skill_id: 'pptx' }], id: 'container_1' },
  ],
  ['an id of the caller’s wins', 'container_own', 'container_own'],
  ['an id among the parameters wins', { id: 'container_own' }, { id: 'container_own' }],
])('container options of the caller: %s', async (_what, given, expected) => {
  const settings = { providerOptions: { anthropic: { tools: [CODE], container: given } } }
  const { bodies } = await twoRequests([RUN, RAN, TEXT], FIRST, { settings, between: [user('Again.')] })
  expect(bodies[1]!['container']).toEqual(expected)
})

test('a conversation continues in its container from a stored state', async () => {
  const held = { id: 'container_7', expires_at: '2999-01-01T00:00:00Z' }
  const usage = {
    ...{ input_tokens: 1, output_tokens: 2, cache_creation_input_tokens: 9 },
    cache_creation: { ephemeral_1h_input_tokens: 9 },
  }
  const reply = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [RUN, RAN, TEXT], usage }
  const bodies: JsonObject[] = []
  const answer = async (_url: unknown, init?: RequestInit): Promise<Response> => {
    bodies.push((await new Response(init?.body).json()) as JsonObject)
    return Response.json({ ...reply, stop_reason: 'end_turn', stop_sequence: null, container: held })
  }
  const model = anthropic('claude-sonnet-5', { apiKey: 'k', fetch: answer })
  await using harness = new Harness({ model, builtinTools: [], settings: OFFERED })
  const { resumeState, transcript } = await harness.run('Go.')
  const stored = JSON.parse(JSON.stringify(resumeState)) as NonNullable<typeof resumeState>
  await harness.run('Again.', { history: stored })
  expect(bodies.map(({ container }) => container)).toEqual([undefined, 'container_7'])
  expect(transcript[1]).toMatchObject({ native: { data: { container: held } }, usage: { longCacheWriteTokens: 9 } })
})
