import { AgentCapabilitiesSchema } from '@ag-ui/core/schemas'
import { EventType } from '@ag-ui/client'
import type { BaseEvent, Message, Tool } from '@ag-ui/client'
import { describe, expect, test } from 'vitest'
import { memoryLog } from 'thinharness'
import { Sessions } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { createHandlers } from 'thinharness/ui'
import type { Handlers } from 'thinharness/ui'
import { harnessOf } from '../../../harness/support.js'
import { served } from '../support/served.js'
import { agentOf, URL_OF } from './agent.js'
import type { TestAgent } from './agent.js'

const PAINT: Tool = {
  name: 'paint',
  description: 'Paints the page.',
  parameters: { type: 'object', properties: { color: { type: 'string' } }, required: ['color'] },
}
const ON = { clientTools: true }

function answer(client: TestAgent, toolCallId: string, content: string, error?: string): Promise<BaseEvent[]> {
  const id = `result_${toolCallId}`
  client.agent.addMessage({ id, role: 'tool', toolCallId, content, ...(error !== undefined && { error }) })
  return client.send(null)
}

const results = (messages: readonly Message[]): readonly unknown[] =>
  messages.filter(({ role }) => role === 'tool').map(({ content }) => content)

function posted(tool: object): Request {
  const messages = [{ id: 'm1', role: 'user', content: 'Hi.' }]
  const body = JSON.stringify({ threadId: 'chat_1', runId: 's1', context: [], messages, tools: [tool] })
  return new Request(URL_OF, { method: 'POST', body })
}

async function storedMessages({ requests }: Handlers): Promise<unknown> {
  const response = await requests(new Request('http://localhost/threads/chat_1/messages?format=agui'))
  return response.json()
}

describe.each(['sessions', 'harness'] as const)('AG-UI with tools of the page over %s', (kind) => {
  test('AG-24 the call of a tool of the page ends the stretch, and a tool message is its result', async () => {
    const model = new ScriptedModel().calls('paint', { color: 'red' }).says('It is red.')
    const handlers = served(kind, model, ON)
    const client = agentOf(handlers, [PAINT])
    const called = await client.send('Paint it red.')
    expect(called.at(-1)).toMatchObject({
      type: 'RUN_FINISHED',
      outcome: { type: 'success', pendingToolCallIds: ['call_1'] },
    })
    const ended = await answer(client, 'call_1', 'painted')
    expect(ended.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' }, result: 'It is red.' })
    expect(ended.at(-1)).not.toHaveProperty('outcome.pendingToolCallIds')
    expect(results(client.agent.messages)).toEqual(['painted'])
    expect(await storedMessages(handlers)).toEqual(client.agent.messages)
  })

  test('AG-24 RQ-12 the same result sent again runs nothing again; another is refused', async () => {
    const model = new ScriptedModel().calls('paint', { color: 'red' }).says('It is red.')
    const handlers = served(kind, model, ON)
    const client = agentOf(handlers, [PAINT])
    await client.send('Paint it red.')
    const before = [...client.agent.messages]
    await answer(client, 'call_1', 'painted')
    const messages = client.agent.messages
    const late = agentOf(handlers, [PAINT])
    late.agent.messages = before
    expect((await answer(late, 'call_1', 'painted')).at(-1)).toMatchObject({ type: 'RUN_FINISHED' })
    expect(late.agent.messages).toEqual(messages)
    late.agent.messages = before
    expect((await answer(late, 'call_1', 'torn')).at(-1)).toMatchObject({ type: 'RUN_ERROR', code: 'stale_answer' })
    expect(model.requests).toHaveLength(2)
  })

  test('AG-24 an error of a tool of the page is a failed result', async () => {
    const model = new ScriptedModel().calls('paint', { color: 'red' }).says('I could not.')
    const client = agentOf(served(kind, model, ON), [PAINT])
    await client.send('Paint it red.')
    const ended = await answer(client, 'call_1', '', 'There is no canvas.')
    expect(ended.at(-1)).toMatchObject({ result: 'I could not.' })
    expect(ended.find(({ type }) => type === EventType.TOOL_CALL_RESULT)).toMatchObject({
      content: 'There is no canvas.',
      metadata: { thinharness: { ok: false } },
    })
  })

  test('AG-24 calls of the server run first; an approval of the same reply is an interrupt', async () => {
    const calls = [{ name: 'look' }, { name: 'paint', arguments: { color: 'red' } }, { name: 'pay' }]
    const model = new ScriptedModel().replies({ calls }).says('All done.')
    const client = agentOf(served(kind, model, ON), [PAINT])
    const paused = await client.send('Do all.')
    expect(paused.at(-1)).toMatchObject({ outcome: { type: 'interrupt', interrupts: [{ id: 'call_3' }] } })
    const approved = await client.send(null, [
      { interruptId: 'call_3', status: 'resolved', payload: { approved: true } },
    ])
    expect(approved.at(-1)).toMatchObject({ outcome: { type: 'success', pendingToolCallIds: ['call_2'] } })
    expect((await answer(client, 'call_2', 'painted')).at(-1)).toMatchObject({ result: 'All done.' })
    expect(new Set(results(client.agent.messages))).toEqual(new Set(['seen', 'painted', 'paid']))
  })

  test('AG-24 AG-21 a page that lost the stream gets the call again, and answers it', async () => {
    const model = new ScriptedModel().calls('paint', { color: 'red' }).says('It is red.')
    const client = agentOf(served(kind, model, ON), [PAINT])
    await client.send('Paint it red.')
    client.agent.messages = client.agent.messages.slice(0, 1)
    const again = await client.send(null)
    expect(again.at(-1)).toMatchObject({ outcome: { pendingToolCallIds: ['call_1'] } })
    expect((await answer(client, 'call_1', 'painted')).at(-1)).toMatchObject({ result: 'It is red.' })
  })

  test('AG-24 AG-05 without `clientTools` the tools of the input are not read', async () => {
    const offered: (readonly string[])[] = []
    const model = new ScriptedModel().always(({ tools }) => {
      offered.push(tools)
      return { text: 'I cannot paint.' }
    })
    const handlers = served(kind, model)
    await agentOf(handlers, [PAINT]).send('Paint it red.')
    const metadata = { client_tools: [PAINT] }
    const body = JSON.stringify({ text: 'Paint it red.', metadata })
    const request = new Request('http://localhost/threads/chat_2/messages', { method: 'POST', body })
    expect((await handlers.requests(request)).status).toBe(202)
    await expect.poll(() => offered.length).toBe(2)
    expect(offered.flat()).toContain('look')
    expect(offered.flat()).not.toContain('paint')
  })

  test('AG-24 AG-03 a tool that is not of the form is 400', async () => {
    const { agUi } = served(kind, new ScriptedModel(), ON)
    for (const wrong of [{ name: '' }, { ...PAINT, parameters: 'no' }, { ...PAINT, name: 'two words' }]) {
      expect((await agUi(posted(wrong))).status).toBe(400)
    }
  })

  test('AG-24 a tool with the name of one of the server is refused before the run begins', async () => {
    const { agUi } = served(kind, new ScriptedModel(), ON)
    const response = await agUi(posted({ ...PAINT, name: 'look' }))
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ message: expect.stringContaining('`look` is taken') as string })
  })

  test('AG-24 AG-25 the capabilities say that pages may bring tools', async () => {
    const { agUi } = served(kind, new ScriptedModel(), ON)
    const capabilities: unknown = await (await agUi(new Request(`${URL_OF}/capabilities`))).json()
    expect(AgentCapabilitiesSchema.parse(capabilities)).toMatchObject({ tools: { clientProvided: true } })
  })
})

test('AG-24 another process takes the result: the tools of the page are stored with the run', async () => {
  const log = memoryLog()
  const [first, second] = [new ScriptedModel().calls('paint', { color: 'red' }), new ScriptedModel().says('It is red.')]
  const sessions = new Sessions({ log, harness: harnessOf({ model: first }) })
  const here = agentOf(createHandlers({ sessions, ...ON }), [PAINT])
  const there = agentOf(createHandlers({ harness: harnessOf({ model: second }), log, ...ON }), [PAINT])
  await here.send('Paint it red.')
  await sessions.close()
  there.agent.messages = here.agent.messages
  expect((await answer(there, 'call_1', 'painted')).at(-1)).toMatchObject({ result: 'It is red.' })
})
