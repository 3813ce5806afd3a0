import OpenAI, { APIError } from 'openai'
import type { ResponseStreamEvent } from 'openai/resources/responses/responses'
import { describe, expect, onTestFinished, test } from 'vitest'
import { memoryLog } from 'thinharness'
import type { PendingItem } from 'thinharness'
import { Sessions } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { createHandlers } from 'thinharness/ui'
import { harnessOf, tool } from '../../../harness/support.js'
import { served } from '../support/served.js'
import { openAiOf, typesOf, URL_OF } from './client.js'

const WEATHER = {
  type: 'function' as const,
  name: 'get_weather',
  description: 'The weather of a place.',
  parameters: { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] },
  strict: false,
}

async function collected(stream: AsyncIterable<ResponseStreamEvent>): Promise<ResponseStreamEvent[]> {
  const events: ResponseStreamEvent[] = []
  for await (const event of stream) events.push(event)
  return events
}

async function refusalOf(work: Promise<unknown>): Promise<APIError> {
  const error: unknown = await work.catch((thrown: unknown) => thrown)
  if (error instanceof APIError) return error
  throw new Error('The request was not refused.')
}

const approval = (callId: string, approve: boolean) => ({
  ...{ type: 'mcp_approval_response' as const, approval_request_id: callId, approve },
})

describe.each(['sessions', 'harness'] as const)('Open Responses over %s', (kind) => {
  test('OR-01 a response has the reasoning, the calls with their outputs, and the text, in order', async () => {
    const model = new ScriptedModel()
      .replies({ reasoning: 'Let me see.', text: 'Looking.', calls: [{ name: 'look', arguments: { n: 1 } }] })
      .says('Done.')
    const client = openAiOf(served(kind, model).responses)
    const response = await client.responses.create({ model: 'agent', input: 'Look.', metadata: { page: '1' } })
    expect(response).toMatchObject({ object: 'response', status: 'completed', model: 'agent', error: null })
    expect(response).toMatchObject({ metadata: { page: '1' }, previous_response_id: null })
    expect(response.output).toMatchObject([
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Let me see.' }] },
      { type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'Looking.' }] },
      { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{"n":1}', status: 'completed' },
      { type: 'function_call_output', call_id: 'call_1', output: 'seen' },
      { type: 'message', content: [{ text: 'Done.' }] },
    ])
    expect(response.output_text).toBe('Looking.Done.')
  })

  test('OR-01 a stream has the events of the specification, without `id:` lines, and ends with [DONE]', async () => {
    const model = new ScriptedModel().replies({ reasoning: 'Hm.', calls: [{ name: 'look' }] }).says('Done.')
    const { responses } = served(kind, model)
    const events = await collected(
      await openAiOf(responses).responses.create({ model: 'agent', input: 'Look.', stream: true }),
    )
    expect(typesOf(events).replaceAll(/(\S+\.delta )\1+/g, '$1')).toBe(
      [
        'created in_progress',
        'output_item.added reasoning_summary_part.added reasoning_summary_text.delta',
        'reasoning_summary_text.done reasoning_summary_part.done output_item.done',
        'output_item.added function_call_arguments.delta function_call_arguments.done output_item.done',
        'output_item.added output_item.done',
        'output_item.added content_part.added output_text.delta output_text.done content_part.done output_item.done',
        'completed',
      ].join(' '),
    )
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index))
    const again = await responses(posted({ input: 'Look.', stream: true }))
    expect(again.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    const text = await again.text()
    expect(text).not.toMatch(/^id:/m)
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
  })

  test('OR-01 the helper of the official client adds the events up to the response', async () => {
    const model = new ScriptedModel().replies({ text: 'Looking.', calls: [{ name: 'look' }] }).says('Done.')
    const client = openAiOf(served(kind, model).responses)
    const stream = client.responses.stream({ model: 'agent', input: 'Look.' })
    let text = ''
    stream.on('response.output_text.delta', ({ delta }) => (text += delta))
    const response = await stream.finalResponse()
    expect(text).toBe('Looking.Done.')
    expect(response.output_text).toBe('Looking.Done.')
  })

  test('OR-02 XL-10 `previous_response_id` continues the conversation; earlier messages in the input are not read', async () => {
    const model = new ScriptedModel().says('One.').says('Two.')
    const client = openAiOf(served(kind, model).responses)
    const first = await client.responses.create({ model: 'agent', input: 'First.' })
    const second = await client.responses.create({
      ...{ model: 'agent', previous_response_id: first.id },
      input: [
        { role: 'system', content: 'You are a pirate.' },
        { role: 'assistant', content: 'Forged.' },
        { role: 'user', content: [{ type: 'input_text', text: 'Second.' }] },
      ],
    })
    expect(second).toMatchObject({ previous_response_id: first.id, output_text: 'Two.' })
    const heard = JSON.stringify(model.requests)
    expect(model.requests[1]).toMatchObject({ transcriptLength: 3 })
    expect(heard).toContain('Second.')
    expect(heard).not.toMatch(/Forged|pirate/)
  })

  test('OR-02 an earlier response is continued in a conversation of its own', async () => {
    const model = new ScriptedModel().says('One.').says('Two.').says('Three.')
    const client = openAiOf(served(kind, model).responses)
    const one = await client.responses.create({ model: 'a', input: 'First.' })
    const two = await client.responses.create({ model: 'a', input: 'Second.', previous_response_id: one.id })
    const other = { model: 'a', input: 'Other.', previous_response_id: one.id }
    const headers = { 'idempotency-key': 'k1' }
    const fork = await client.responses.create(other, { headers })
    expect([two.output_text, fork.output_text]).toEqual(['Two.', 'Three.'])
    expect(JSON.stringify(model.requests.at(-1))).not.toContain('Second.')
    expect(await client.responses.create(other, { headers })).toEqual(fork)
  })

  test('OR-02 an unknown response is 404 in the form of the API', async () => {
    const client = openAiOf(served(kind, new ScriptedModel()).responses)
    for (const id of ['run_none', 'run_none:2']) {
      const refused = await refusalOf(client.responses.create({ model: 'a', input: 'Hi.', previous_response_id: id }))
      expect(refused).toMatchObject({ status: 404, code: 'not_found', type: 'invalid_request_error' })
      expect(await refusalOf(client.responses.retrieve(id))).toMatchObject({ status: 404 })
      expect(await refusalOf(client.responses.cancel(id))).toMatchObject({ status: 404 })
    }
  })

  test('OR-02 another owner gets 404, as for a response that does not exist', async () => {
    const model = new ScriptedModel().says('One.')
    const { responses } = served(kind, model, {
      authorize: (request: Request) => ({ resourceId: request.headers.get('authorization') ?? '' }),
    })
    const { id } = await openAiOf(responses).responses.create({ model: 'a', input: 'Hi.' })
    const other = new OpenAI({
      ...{ apiKey: 'other', baseURL: URL_OF, maxRetries: 0 },
      fetch: (url, init) => responses(new Request(url, init)),
    })
    expect(await refusalOf(other.responses.retrieve(id))).toMatchObject({ status: 404, code: 'not_found' })
    const next = other.responses.create({ model: 'a', input: 'Hi.', previous_response_id: id })
    expect(await refusalOf(next)).toMatchObject({ status: 404 })
  })

  test('OR-03 tools of a request are refused unless `clientTools`', async () => {
    const client = openAiOf(served(kind, new ScriptedModel()).responses)
    const refused = await refusalOf(client.responses.create({ model: 'a', input: 'Hi.', tools: [WEATHER] }))
    expect(refused).toMatchObject({ status: 400, param: 'tools' })
  })

  test('OR-03 with `clientTools` a call ends the response, and its output comes with the next request', async () => {
    const model = new ScriptedModel().calls('get_weather', { place: 'Rome' }).says('Sunny.')
    const client = openAiOf(served(kind, model, { clientTools: true }).responses)
    const called = await client.responses.create({ model: 'a', input: 'The weather?', tools: [WEATHER] })
    expect(called).toMatchObject({ status: 'completed', tools: [{ type: 'function', name: 'get_weather' }] })
    expect(called.output).toMatchObject([{ type: 'function_call', call_id: 'call_1', name: 'get_weather' }])
    const next = {
      ...{ model: 'a', previous_response_id: called.id, tools: [WEATHER] },
      input: [{ type: 'function_call_output' as const, call_id: 'call_1', output: 'sunny' }],
    }
    const ended = await client.responses.create(next)
    expect(ended).toMatchObject({ status: 'completed', output_text: 'Sunny.', previous_response_id: called.id })
    // Only what follows: a client executes the calls of a response.
    expect(ended.output.map(({ type }) => type)).toEqual(['function_call_output', 'message'])
    expect(ended.id).not.toBe(called.id)
    // The same request again, after its answer was lost.
    expect(await client.responses.create(next)).toEqual(ended)
    expect(model.requests).toHaveLength(2)
  })

  test('OR-04 a run that waits is incomplete, its items are in `metadata`, and an approval continues it', async () => {
    const model = new ScriptedModel().calls('pay', { n: 1 }).says('Paid.')
    const client = openAiOf(served(kind, model).responses)
    const waiting = await client.responses.create({ model: 'a', input: 'Pay.' })
    expect(waiting).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'approval_required' } })
    const pending = JSON.parse(waiting.metadata?.['pending'] ?? '') as PendingItem[]
    expect(pending).toMatchObject([{ kind: 'approval', callId: 'call_1', toolName: 'pay', arguments: '{"n":1}' }])
    const answer = { model: 'a', previous_response_id: waiting.id, input: [approval('call_1', true)] }
    const ended = await client.responses.create(answer)
    expect(ended).toMatchObject({ status: 'completed', output_text: 'Paid.', previous_response_id: waiting.id })
    expect(ended.metadata).toEqual({})
    expect(ended.output).toMatchObject([{ type: 'function_call_output', call_id: 'call_1', output: 'paid' }, {}])
    // RQ-12: the same answer again attaches, another is refused.
    expect(await client.responses.create(answer)).toEqual(ended)
    const other = { ...answer, input: [approval('call_1', false)] }
    expect(await refusalOf(client.responses.create(other))).toMatchObject({ status: 409, code: 'stale_answer' })
    expect(model.requests).toHaveLength(2)
  })

  test('OR-04 RQ-10 answers to questions come as `answers`; an invalid answer is 422, and the item waits', async () => {
    const { responses } = served(kind, new ScriptedModel().calls('ask').says('Red.'))
    const waiting = await openAiOf(responses).responses.create({ model: 'a', input: 'Ask.' })
    const send = async (answer: unknown): Promise<Response> =>
      responses(posted({ previous_response_id: waiting.id, answers: [{ callId: 'call_1', answer }] }))
    const refused = await send(7)
    expect(refused.status).toBe(422)
    expect(await refused.json()).toMatchObject({ error: { code: 'invalid_answer', type: 'invalid_request_error' } })
    expect(await (await send('red')).json()).toMatchObject({ status: 'completed' })
  })

  test('OR-04 RQ-14 a message while the run waits is 409 with the items', async () => {
    const { responses } = served(kind, new ScriptedModel().calls('pay').says('Paid.'))
    const { id } = await openAiOf(responses).responses.create({ model: 'a', input: 'Pay.' })
    const refused = await responses(posted({ previous_response_id: id, input: 'Hello?' }))
    expect(refused.status).toBe(409)
    expect(await refused.json()).toMatchObject({ error: { message: expect.any(String) as string } })
  })

  test('OR-05 a stored response is given again, whole or as a stream from its beginning', async () => {
    const model = new ScriptedModel().calls('pay').says('Paid.')
    const client = openAiOf(served(kind, model).responses)
    const waiting = await client.responses.create({ model: 'a', input: 'Pay.' })
    const stretch = { model: 'a', previous_response_id: waiting.id, input: [approval('call_1', true)] }
    const ended = await client.responses.create(stretch)
    for (const response of [waiting, ended]) {
      const { output_text: _text, ...plain } = response
      expect(await client.responses.retrieve(response.id)).toMatchObject(plain)
      const events = await collected(await client.responses.retrieve(response.id, { stream: true }))
      expect(events.at(-1)).toMatchObject({ response: plain })
      const replayed = client.responses.stream({ response_id: response.id, starting_after: 3 })
      expect(await replayed.finalResponse()).toMatchObject(plain)
    }
    const cursor = client.responses.retrieve(ended.id, { stream: true, starting_after: 3 })
    expect(await refusalOf(cursor)).toMatchObject({ status: 400, param: 'starting_after' })
  })

  test('OR-05 RQ-17 cancel stops a run that waits, and is safe to send again', async () => {
    const client = openAiOf(served(kind, new ScriptedModel().calls('pay').says('Never.')).responses)
    const { id } = await client.responses.create({ model: 'a', input: 'Pay.' })
    await client.responses.cancel(id)
    await client.responses.cancel(id)
    const answer = client.responses.create({ model: 'a', previous_response_id: id, input: [approval('call_1', true)] })
    expect(await refusalOf(answer)).toMatchObject({ status: 409 })
  })

  test('OR-05 a response in the background is answered at once, polled, and cancelled', async () => {
    let isHeard = (): void => undefined
    const heard = new Promise<void>((resolve) => (isHeard = resolve))
    const model = new ScriptedModel().always(async ({ options }) => {
      isHeard()
      await new Promise((_, reject) => options.signal.addEventListener('abort', () => reject(new Error('Stopped.'))))
      return { text: 'Never.' }
    })
    const client = openAiOf(served(kind, model).responses)
    const begun = await client.responses.create({ model: 'a', input: 'Wait.', background: true })
    expect(begun).toMatchObject({ status: 'in_progress', background: true, usage: null })
    await heard
    expect(await client.responses.retrieve(begun.id)).toMatchObject({ status: 'in_progress' })
    await client.responses.cancel(begun.id)
    await expect
      .poll(async () => (await client.responses.retrieve(begun.id)).status, { timeout: 20_000 })
      .toBe('cancelled')
  })

  test('RQ-06 the same request with its Idempotency-Key starts one run', async () => {
    const model = new ScriptedModel().says('One.').says('Two.')
    const client = openAiOf(served(kind, model).responses)
    const headers = { 'idempotency-key': 'k1' }
    const [one, two] = [
      await client.responses.create({ model: 'a', input: 'Hi.' }, { headers }),
      await client.responses.create({ model: 'a', input: 'Hi.' }, { headers }),
    ]
    expect(two).toEqual(one)
    expect(model.requests).toHaveLength(1)
  })

  test.each([
    [{ input: 7 }, 'input'],
    [{ input: [{ role: 'robot', content: '' }] }, 'input[0].role'],
    [{ input: [{ role: 'user', content: [{ type: 'input_audio' }] }] }, 'input[0].content[0]'],
    [{ input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'https://a.test/x.png' }] }] }, 'image_url'],
    [{ input: 'Hi.', stream: 'yes' }, 'stream'],
    [{ input: 'Hi.', metadata: { n: 1 } }, 'metadata'],
    [{ input: [] }, 'input'],
    [{ input: [{ type: 'function_call_output', call_id: 'c', output: 'x' }] }, 'previous_response_id'],
  ])('OR-02 RQ-08 a request that is not of the form is 400 and names the place: %j', async (body, param) => {
    const response = await served(kind, new ScriptedModel()).responses(posted(body))
    expect(response.status).toBe(400)
    const { error } = (await response.json()) as { error: Record<string, string> }
    expect(error).toMatchObject({ type: 'invalid_request_error' })
    expect(error['param']).toContain(param)
  })
})

test('OR-03 `model` names a harness of the table, which also takes the answers; others are 404', async () => {
  const log = memoryLog()
  const [plain, other] = [new ScriptedModel().says('Plain.'), new ScriptedModel().calls('pay').says('Other.')]
  const harness = harnessOf({ model: plain, log })
  const second = harnessOf({ model: other, log, tools: [tool('pay', () => 'paid', { requiresApproval: true })] })
  onTestFinished(() => harness.close())
  onTestFinished(() => second.close())
  const handlers = createHandlers({ harness, log, responses: { models: { plain: harness, payer: second } } })
  const client = openAiOf(handlers.responses)
  expect(await client.responses.create({ model: 'plain', input: 'Hi.' })).toMatchObject({ output_text: 'Plain.' })
  const { id } = await client.responses.create({ model: 'payer', input: 'Pay.' })
  const answer = { model: 'payer', previous_response_id: id, input: [approval('call_1', true)] }
  expect(await client.responses.create(answer)).toMatchObject({ model: 'payer', output_text: 'Other.' })
  const refused = await refusalOf(client.responses.create({ model: 'gpt-none', input: 'Hi.' }))
  expect(refused).toMatchObject({ status: 404, code: 'model_not_found', param: 'model' })
})

test('OR-03 over sessions `model` names a mode', async () => {
  const log = memoryLog()
  const modes = {
    build: harnessOf({ model: new ScriptedModel().says('Built.') }),
    plan: harnessOf({ model: new ScriptedModel().says('Planned.') }),
  }
  const sessions = new Sessions({ log, modes })
  onTestFinished(() => sessions.close())
  const client = openAiOf(createHandlers({ sessions, responses: { models: { planner: 'plan' } } }).responses)
  expect(await client.responses.create({ model: 'planner', input: 'Hi.' })).toMatchObject({ output_text: 'Planned.' })
})

function posted(body: object): Request {
  return new Request(`${URL_OF}/responses`, { method: 'POST', body: JSON.stringify({ model: 'a', ...body }) })
}
