import { EventType } from '@ag-ui/client'
import type { Message, ResumeEntry } from '@ag-ui/client'
import { AgentCapabilitiesSchema } from '@ag-ui/core/schemas'
import { describe, expect, test } from 'vitest'
import { ScriptedModel } from 'thinharness/testing'
import type { Handlers } from 'thinharness/ui'
import { reduceChat } from 'thinharness/ui/client'
import type { ChatSnapshot, FollowedEvent } from 'thinharness/ui/client'
import { served } from '../support/served.js'
import { agentOf, URL_OF } from './agent.js'
import { byOwner } from './client.js'

function contents(messages: readonly Message[]): readonly unknown[] {
  return messages.map(({ role, content }) => [role, content])
}

async function storedMessages({ requests }: Handlers): Promise<readonly Message[]> {
  const response = await requests(new Request('http://localhost/threads/chat_1/messages?format=agui'))
  expect(response.status).toBe(200)
  return (await response.json()) as Message[]
}

describe.each(['sessions', 'harness'] as const)('AG-UI over %s', (kind) => {
  test('AG-01 AG-02 AG-06 RQ-21 a call and a text are read by HttpAgent', async () => {
    const handlers = served(kind, new ScriptedModel().calls('look', {}).says('Done.'))
    const client = agentOf(handlers)
    const events = await client.send('Look.')
    expect(events[0]).toMatchObject({
      ...{ type: 'RUN_STARTED', threadId: 'chat_1', runId: 'stretch_0', protocolVersion: '1.0' },
      metadata: { thinharness: { stretch: 1 } },
    })
    expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' }, result: 'Done.' })
    const { messages } = client.agent
    expect(contents(messages)).toEqual([
      ['user', 'Look.'],
      ['assistant', undefined],
      ['tool', 'seen'],
      ['assistant', 'Done.'],
    ])
    expect(await storedMessages(handlers)).toEqual(messages)
  })

  test('AG-01 the answer is a stream of server-sent events, one event a line', async () => {
    const { agUi } = served(kind, new ScriptedModel().says('Hi.'))
    const response = await agUi(posted({ messages: [{ id: 'm1', role: 'user', content: 'Hi.' }] }))
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    const text = await response.text()
    expect(text).not.toContain('\r')
    for (const frame of text.split('\n\n').filter((each) => each !== ''))
      expect(frame).toMatch(/^(?:data: \{.*\}|: .*)$/)
    expect(text).not.toContain(':null')
  })

  test('AG-09 AG-15 AG-17 an approval is an interrupt, and its answer sent twice runs once', async () => {
    const handlers = served(kind, new ScriptedModel().calls('pay', {}).says('Paid.'))
    const client = agentOf(handlers)
    const paused = await client.send('Pay.')
    expect(paused.at(-1)).toMatchObject({
      type: 'RUN_FINISHED',
      outcome: { type: 'interrupt', interrupts: [{ id: 'call_1', reason: 'tool_call', toolCallId: 'call_1' }] },
    })
    const resume: ResumeEntry[] = [{ interruptId: 'call_1', status: 'resolved', payload: { approved: true } }]
    const resumed = await client.send(null, resume)
    expect(resumed.map(({ type }) => type)).not.toContain('TOOL_CALL_START')
    expect(resumed.find(({ type }) => type === EventType.TOOL_CALL_RESULT)).toMatchObject({
      toolCallId: 'call_1',
      content: 'paid',
    })
    const messages = client.agent.messages
    expect(messages.at(-1)).toMatchObject({ role: 'assistant', content: 'Paid.' })
    const again = await client.send(null, resume)
    expect(again.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } })
    expect(client.agent.messages).toEqual(messages)
    expect(await storedMessages(handlers)).toEqual(messages)
  })

  test('AG-16 an item without an answer ends the stretch, and nothing runs', async () => {
    const model = new ScriptedModel().replies({ calls: [{ name: 'pay' }, { name: 'pay' }] }).says('Paid.')
    const client = agentOf(served(kind, model))
    const paused = await client.send('Pay twice.')
    expect(paused.at(-1)).toMatchObject({ outcome: { interrupts: [{ id: 'call_1' }, { id: 'call_2' }] } })
    client.agent.pendingInterrupts = []
    const partial = await client.send(null, [
      { interruptId: 'call_1', status: 'resolved', payload: { approved: true } },
      { interruptId: 'call_9', status: 'cancelled' },
    ])
    expect(partial.find(({ type }) => type === EventType.CUSTOM)).toMatchObject({ name: 'thinharness.warning' })
    expect(partial.at(-1)).toMatchObject({ outcome: { interrupts: [{ id: 'call_1' }, { id: 'call_2' }] } })
    expect(client.agent.messages.some(({ role }) => role === 'tool')).toBe(false)
  })

  test('AG-15 a cancelled entry refuses an approval and declines a question', async () => {
    const model = new ScriptedModel().replies({ calls: [{ name: 'pay' }, { name: 'ask' }] }).says('All right.')
    const client = agentOf(served(kind, model))
    await client.send('Pay and ask.')
    for (let round = 0; client.agent.pendingInterrupts.length > 0 && round < 3; round++)
      await client.send(
        null,
        client.agent.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: 'cancelled' })),
      )
    expect(client.agent.messages.at(-1)).toMatchObject({ role: 'assistant', content: 'All right.' })
    const results = client.agent.messages.filter(({ role }) => role === 'tool')
    expect(results).toHaveLength(2)
    for (const { content } of results) expect(content).toContain('The person did not decide.')
  })

  test('arguments that a person has edited are those of every reading: live, in a snapshot, later and on a page', async () => {
    const handlers = served(kind, new ScriptedModel().calls('pay', { euros: 100 }).says('Paid.').says('And now?'))
    const client = agentOf(handlers)
    await client.send('Pay.')
    await client.send(null, [
      { interruptId: 'call_1', status: 'resolved', payload: { approved: true, editedArgs: { euros: 5 } } },
    ])
    const argumentsOf = (messages: readonly Message[]): unknown =>
      messages
        .flatMap((each) => ('toolCalls' in each ? (each.toolCalls ?? []) : []))
        .map((call) => call.function.arguments)
    const edited = ['{"euros":5}']
    expect(argumentsOf(client.agent.messages)).toEqual(edited)
    expect(argumentsOf(await storedMessages(handlers))).toEqual(edited)
    const later = agentOf(handlers)
    await later.send('And now?')
    expect(argumentsOf(later.agent.messages)).toEqual(edited)
    const listed = await handlers.events(new Request('http://localhost/threads/chat_1/events?wait=0'))
    const events = (await listed.json()) as readonly FollowedEvent[]
    const page = events.reduce<ChatSnapshot | undefined>(reduceChat, undefined)
    expect(page?.runs[0]?.calls.map((call) => call.arguments)).toEqual(edited)
  })

  test.each([
    ['refused', '/answers', { answers: ['call_1', 'call_2'].map((callId) => ({ callId, approved: false })) }],
    ['stopped', '/stop', {}],
  ])(
    'an answer that comes too late is passed over, and its client goes on: what waited was %s',
    async (_, path, body) => {
      const model = new ScriptedModel().callsAll([{ name: 'pay' }, { name: 'pay' }]).always({ text: 'Well.' })
      const handlers = served(kind, model)
      const client = agentOf(handlers)
      await client.send('Pay twice.')
      const request = { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
      expect((await handlers.requests(new Request(`http://localhost/threads/chat_1${path}`, request))).status).toBe(202)
      const approved = { status: 'resolved', payload: { approved: true } } as const
      const resume = ['call_1', 'call_2'].map((interruptId) => ({ interruptId, ...approved }))
      const events = await client.send(null, resume)
      const warnings = events.filter((event) => 'name' in event && event['name'] === 'thinharness.warning')
      expect(warnings).toMatchObject([{ value: { message: 'Nothing waits for the answer to `call_1`.' } }, {}])
      expect(events.at(-1)?.type).toBe('RUN_FINISHED')
      expect(client.agent.pendingInterrupts).toEqual([])
      expect((await client.send('And now?')).at(-1)).toMatchObject({ type: 'RUN_FINISHED', result: 'Well.' })
    },
  )

  test('AG-18 a message while the run waits changes nothing', async () => {
    const handlers = served(kind, new ScriptedModel().calls('pay', {}).says('Paid.'))
    const client = agentOf(handlers)
    await client.send('Pay.')
    const before = await storedMessages(handlers)
    client.agent.pendingInterrupts = []
    expect((await client.send('Hello?')).at(-1)).toMatchObject({ type: 'RUN_ERROR', code: 'pending' })
    expect(await storedMessages(handlers)).toEqual(before)
  })

  test('AG-19 a payload that does not fit is an error, and the item waits', async () => {
    const client = agentOf(served(kind, new ScriptedModel().calls('ask', {}).says('Red.')))
    await client.send('Ask.')
    const refused = await client.send(null, [{ interruptId: 'call_1', status: 'resolved', payload: { no: 1 } }])
    expect(refused.at(-1)).toMatchObject({ type: 'RUN_ERROR', code: 'invalid_answer' })
    const ended = await client.send(null, [{ interruptId: 'call_1', status: 'resolved', payload: 'red' }])
    expect(ended.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } })
  })

  test('AG-05 AG-23 XL-10 a second message continues the thread; earlier messages of the client are ignored', async () => {
    const model = new ScriptedModel().says('One.').says('Two.')
    const handlers = served(kind, model)
    const client = agentOf(handlers)
    await client.send('First.')
    const [, reply] = client.agent.messages
    client.agent.messages = [...client.agent.messages.slice(0, 1), { ...reply, content: 'Forged.' } as Message]
    const events = await client.send('Second.')
    expect(events.map(({ type }) => type)).toContain('MESSAGES_SNAPSHOT')
    expect(contents(client.agent.messages)).toEqual([
      ['user', 'First.'],
      ['assistant', 'One.'],
      ['user', 'Second.'],
      ['assistant', 'Two.'],
    ])
    expect(JSON.stringify(model.requests)).not.toContain('Forged.')
    expect(await storedMessages(handlers)).toEqual(client.agent.messages)
  })

  test('AG-21 XL-01 a stream that was cut at any place is taken up by another POST', async () => {
    const script = (): ScriptedModel =>
      new ScriptedModel()
        .replies({ reasoning: 'Let me see.', text: 'Looking.', calls: [{ name: 'look' }] })
        .says('Done.')
    const undisturbed = agentOf(served(kind, script()))
    await undisturbed.send('Look.')
    const messages = undisturbed.agent.messages.map(({ id: _id, ...message }) => message)
    for (let cutAt = 200; cutAt < 3_000; cutAt += 197) {
      const client = agentOf(served(kind, script()))
      client.cutAt = cutAt
      await client.send('Look.').catch(() => undefined)
      client.cutAt = null
      await client.send(null)
      const read = client.agent.messages.map(({ id: _id, ...message }) => message)
      expect(withoutIds(read), `cut at ${cutAt}`).toEqual(withoutIds(messages))
    }
  })

  test('AG-25 the capabilities name what is on', async () => {
    const { agUi } = served(kind, new ScriptedModel())
    const response = await agUi(new Request(`${URL_OF}/capabilities`))
    const capabilities: unknown = await response.json()
    expect(AgentCapabilitiesSchema.parse(capabilities)).toMatchObject({
      transport: { streaming: true, resumable: false },
      tools: { supported: true, clientProvided: false },
      multiAgent: { supported: false, subagents: [] },
      humanInTheLoop: { approvals: true, interrupts: true, approveWithEdits: true },
    })
  })

  test.each([
    [{ messages: 'no' }, '`messages`'],
    [{ messages: [{ id: 'm1', role: 'robot', content: '' }] }, '`messages[0].role`'],
    [{ messages: [], threadId: '' }, '`threadId`'],
    [{ messages: [], resume: [{ interruptId: 'x', status: 'maybe' }] }, '`resume[0].status`'],
    [{ messages: [{ id: 'm1', role: 'user', content: [{ type: 'video' }] }] }, '`content[0]`'],
  ])('AG-03 RQ-08 an input that is not of the form is 400: %j', async (body, path) => {
    const { agUi } = served(kind, new ScriptedModel())
    const response = await agUi(posted(body))
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ message: expect.stringContaining(path) as string })
  })
})

function posted(body: object): Request {
  const input = { threadId: 'chat_1', runId: 'stretch_1', tools: [], context: [], ...body }
  return new Request(URL_OF, { method: 'POST', body: JSON.stringify(input) })
}

/** The ids of runs differ from test to test. */
function withoutIds(messages: readonly object[]): unknown {
  return JSON.parse(JSON.stringify(byOwner(messages as never)).replaceAll(/run_[0-9a-f]+/g, 'run'))
}
