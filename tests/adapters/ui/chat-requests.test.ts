import { expect, onTestFinished, test } from 'vitest'
import { memoryLog } from 'thinharness'
import type { PendingItem } from 'thinharness'
import { Sessions } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { createHandlers, fromUIMessages } from 'thinharness/ui'
import type { HandlerOptions, UiChunk } from 'thinharness/ui'
import { runTransport } from 'thinharness/ui/client'
import { pendingAnswers } from '#adapters/ui/ai-sdk/read-messages.js'
import { harnessOf, tool } from '../../harness/support.js'
import { gate } from '../../session/support.js'
import { collect } from '../../support/collect.js'
import { messageAfter } from './ai-sdk/clients.js'
import { fetchOf, plainChat } from './support/chats.js'

const BASE = 'http://localhost/api'

function served(model: ScriptedModel, options: Partial<HandlerOptions> = {}) {
  const log = memoryLog()
  const paid: unknown[] = []
  const pay = tool(
    'pay',
    (args) => {
      paid.push(args)
      return 'paid'
    },
    { requiresApproval: true },
  )
  const harness = harnessOf({ model, tools: [pay, tool('look', () => 'seen')], log })
  onTestFinished(() => harness.close())
  const handlers = createHandlers({ harness, log, ...options })
  const fetched = fetchOf(7, handlers.aiSdk)
  return { log, harness, paid, fetch: fetched, chat: plainChat(7, { fetch: fetched }), ...handlers }
}

async function chunksOf(response: Response): Promise<readonly UiChunk[]> {
  const lines = (await response.text()).matchAll(/^data: (\{.*\})$/gm)
  return [...lines].map(([, json = '']) => JSON.parse(json) as UiChunk)
}

function postOf(messages: readonly object[], more: object = {}): Request {
  return new Request(`${BASE}/chat`, { method: 'POST', body: JSON.stringify({ id: 'c1', messages, ...more }) })
}

const said = (id: string, text: string): object => ({ id, role: 'user', parts: [{ type: 'text', text }] })

test('UI-15 a replay of the last steps begins with what was left out, and has the end of the message', async () => {
  const model = new ScriptedModel()
  for (let step = 1; step < 5; step++) model.calls('look', {}, { text: `Step ${step}.` })
  model.says('Done.')
  const server = served(model, { aiSdk: { replaySteps: 2 } })
  await server.chat.sendMessage({ text: 'Go.' })
  const whole = server.chat.messages[1]
  const replay = await server.aiSdk(new Request(`${BASE}/chat/c1/stream?replay=1`))
  const message = await messageAfter(7, await chunksOf(replay))
  const url = '/api/threads/c1/messages?format=ui'
  expect(message.parts[0]).toEqual({ type: 'data-skipped', id: 'skipped', data: { steps: 3, url } })
  const steps = whole?.parts.flatMap(({ type }, index) => (type === 'step-start' ? [index] : [])) ?? []
  expect(steps).toHaveLength(5)
  expect(message.parts.slice(1)).toEqual(JSON.parse(JSON.stringify(whole?.parts.slice(steps[3]))))
  expect(message.metadata).toEqual(whole?.metadata)
  const messages = (await (await server.requests(new Request(`http://localhost${url}`))).json()) as unknown[]
  expect(JSON.stringify(messages)).toContain('Step 1.')
})

test('UI-15 a run that is not longer is replayed as a whole', async () => {
  const server = served(new ScriptedModel().says('Done.'), { aiSdk: { replaySteps: 1 } })
  await server.chat.sendMessage({ text: 'Go.' })
  const replay = await chunksOf(await server.aiSdk(new Request(`${BASE}/chat/c1/stream?replay=1`)))
  expect(replay.map(({ type }) => type)).not.toContain('data-skipped')
})

test('UI-10 UI-23 arguments are edited by answers in the body, and the message has those that ran', async () => {
  const { chat, paid } = served(new ScriptedModel().calls('pay', { n: 1 }).says('Done.'))
  await chat.sendMessage({ text: 'Pay.' })
  const answers = [{ callId: 'call_1', approved: true, editedArguments: { n: 7 } }]
  await chat.sendMessage(undefined, { body: { answers } })
  expect(chat.error).toBeUndefined()
  expect(paid).toEqual([{ n: 7 }])
  expect(chat.messages[1]?.parts.find(({ type }) => type === 'dynamic-tool')).toMatchObject({
    ...{ state: 'output-available', input: { n: 7 }, output: 'paid' },
  })
})

test.each([5, 6, 7] as const)(
  'AI SDK %s: a page that comes back while the run waits gets what waits, and answers it',
  async (dialect) => {
    const { aiSdk, paid } = served(new ScriptedModel().calls('pay', { n: 1 }).says('Done.'))
    const fetched = fetchOf(dialect, aiSdk)
    await (await aiSdk(postOf([said('m1', 'Pay.')]))).text()
    for (const transport of [undefined, runTransport({ dialect, fetch: fetched as typeof fetch })]) {
      const page = plainChat(dialect, { fetch: fetched, ...(transport && { transport }) })
      await page.resumeStream()
      expect([page.error, page.status]).toEqual([undefined, 'ready'])
      const pending = page.messages.at(-1)?.parts.find(({ type }) => type === 'data-pending')
      expect(pending).toMatchObject({ data: { items: [{ callId: 'call_1', kind: 'approval' }] } })
      if (transport === undefined) continue
      await page.sendMessage(undefined, { body: { answers: [{ callId: 'call_1', approved: true }] } })
      expect([page.error, paid]).toEqual([undefined, [{ n: 1 }]])
      expect(page.messages.at(-1)?.parts.at(-1)).toMatchObject({ type: 'text', text: 'Done.' })
      expect((await fetched('/api/chat/c1/stream')).status).toBe(204)
    }
  },
)

test('RQ-10 answers in the body win over those in the parts of the message', async () => {
  const { chat, aiSdk, paid } = served(new ScriptedModel().calls('pay', { n: 1 }).says('Done.'))
  await chat.sendMessage({ text: 'Pay.' })
  const [prompt, message] = JSON.parse(JSON.stringify(chat.messages)) as {
    id: string
    parts: { type: string; state?: string; approval?: object }[]
  }[]
  const part = message?.parts.find(({ type }) => type === 'dynamic-tool')
  Object.assign(part ?? {}, { state: 'approval-responded', approval: { id: 'call_1', approved: true } })
  const answers = [{ callId: 'call_1', approved: false, reason: 'No.' }]
  const chunks = await chunksOf(await aiSdk(postOf([prompt ?? {}, message ?? {}], { answers })))
  expect(chunks).toContainEqual(expect.objectContaining({ type: 'tool-output-denied', toolCallId: 'call_1' }))
  expect(paid).toEqual([])
})

test('UI-35 a message while a run is in progress waits for it; with `reject` it is 409', async () => {
  const { opened, open } = gate()
  const model = new ScriptedModel().replies(async () => {
    await opened
    return 'One.'
  })
  model.says('Two.')
  const { aiSdk } = served(model)
  const first = await aiSdk(postOf([said('m1', 'One?')]))
  const refused = await aiSdk(postOf([said('m2', 'Two?')], { whenBusy: 'reject' }))
  expect([refused.status, await refused.json()]).toMatchObject([409, { code: 'busy' }])
  const second = await aiSdk(postOf([said('m3', 'Two?')]))
  open()
  expect((await chunksOf(first)).at(-1)).toMatchObject({ type: 'finish' })
  expect(await chunksOf(second)).toContainEqual(expect.objectContaining({ type: 'text-delta', delta: 'Two.' }))
})

test('UI-36 a reply is generated again: by a new run before the earlier one, which leaves the conversation', async () => {
  const model = new ScriptedModel().says('One.').says('Two.').says('Three.').says('Two again.').says('Four.')
  const { chat, requests, log } = served(model)
  for (const text of ['1', '2', '3']) await chat.sendMessage({ text })
  await chat.regenerate({ messageId: chat.messages[3]?.id ?? '' })
  expect(chat.error).toBeUndefined()
  const texts = (): unknown[] =>
    chat.messages.flatMap(({ parts }) => parts.flatMap((part) => ('text' in part ? [part.text] : [])))
  expect(texts()).toEqual(['1', 'One.', '2', 'Two again.'])
  await chat.sendMessage({ text: '4' })
  expect(texts()).toEqual(['1', 'One.', '2', 'Two again.', '4', 'Four.'])
  const stored = (await (
    await requests(new Request(`${BASE}/threads/c1/messages?format=ui`))
  ).json()) as typeof chat.messages
  expect(stored.map(({ id }) => id)).toEqual(chat.messages.map(({ id }) => id))
  expect(model.requests.at(-1)?.transcriptLength).toBe(5)
  expect(await collect(log.list({ kind: 'run' }))).toHaveLength(5)
})

test.each(['a message', 'a reply'])(
  'UI-36 a page without its messages names %s that is generated again',
  async (what) => {
    const model = (): ScriptedModel => new ScriptedModel().says('One.').says('One again.')
    const { aiSdk } = served(model())
    const [start] = await chunksOf(await aiSdk(postOf([said('m1', 'One?')])))
    const messageId = what === 'a message' ? 'm1' : (start as { readonly messageId: string }).messageId
    const again = await chunksOf(await aiSdk(postOf([], { trigger: 'regenerate-message', messageId })))
    expect(again).toContainEqual(expect.objectContaining({ type: 'text-delta', delta: 'One again.' }))
    const unknown = await aiSdk(postOf([], { trigger: 'regenerate-message', messageId: 'x' }))
    expect([unknown.status, (await aiSdk(postOf([], { trigger: 'regenerate-message' }))).status]).toEqual([404, 400])
  },
)

test('RQ-01 handlers are made of sessions, or of a harness and its log', () => {
  const log = memoryLog()
  const harness = harnessOf({ model: new ScriptedModel() })
  const sessions = new Sessions({ log, harness })
  onTestFinished(() => sessions.close())
  for (const options of [{}, { harness }, { log }, { sessions, log }])
    expect(() => createHandlers(options)).toThrow('to be given `sessions`, or `harness` and `log`')
  const handlers = createHandlers({ sessions })
  for (const handler of Object.values(handlers)) expect(handler).toBeTypeOf('function')
})

test('RQ-02 over a harness a conversation is a thread of its log; a run that no thread has can be read, and not changed', async () => {
  const { chat, harness, log, requests, events, responses } = served(new ScriptedModel().says('One.').says('Alone.'))
  await chat.sendMessage({ text: '1' })
  expect(await log.inspect({ kind: 'thread', id: 'c1' })).not.toBeNull()
  const { runId } = await harness.run('Hi.', { metadata: { conversation_id: 'c2' } })
  expect(await (await events(new Request(`${BASE}/runs/${runId}/events`))).text()).toContain('"text":"Alone."')
  expect(await (await responses(new Request(`${BASE}/responses/${runId}`))).json()).toMatchObject({
    status: 'completed',
  })
  expect((await requests(new Request(`${BASE}/threads/c2/messages`))).status).toBe(404)
  const refused = await requests(new Request(`${BASE}/runs/${runId}/stop`, { method: 'POST' }))
  expect([refused.status, await refused.json()]).toMatchObject([409, { code: 'not_supported' }])
})

test('RQ-09 fromUIMessages takes texts, images, sound and files of the last message, and names other parts', () => {
  const message = (...parts: object[]): readonly unknown[] => [
    { id: 'a1', role: 'assistant', parts: [{ type: 'text', text: 'Earlier.' }] },
    { id: 'm1', role: 'user', parts },
  ]
  const file = (mediaType: string, more: object = {}): object => ({
    ...{ type: 'file', mediaType, url: `data:${mediaType};base64,QUJD`, ...more },
  })
  expect(
    fromUIMessages(
      message(
        { type: 'text', text: 'Look.' },
        file('image/png'),
        file('audio/wav'),
        file('application/pdf', { filename: 'a.pdf' }),
      ),
    ),
  ).toEqual([
    { type: 'text', text: 'Look.' },
    { type: 'image', data: 'QUJD', mediaType: 'image/png' },
    { type: 'audio', data: 'QUJD', mediaType: 'audio/wav' },
    { type: 'file', data: 'QUJD', mediaType: 'application/pdf', name: 'a.pdf' },
  ])
  const link = file('image/png', { url: 'https://example.test/a.png' })
  expect(() => fromUIMessages(message(link))).toThrow('The link in `parts[0]` of the message is not allowed')
  expect(fromUIMessages(message(link), { allowUrl: ({ host }) => host === 'example.test' })).toEqual([
    { type: 'image', url: 'https://example.test/a.png' },
  ])
  expect(() => fromUIMessages(message({ type: 'data-x', data: 1 }))).toThrow('got `data-x`')
  expect(() => fromUIMessages([{ id: 'a', role: 'assistant', parts: [] }])).toThrow('of role user')
  expect(() => fromUIMessages([{ id: 'a', role: 'user' }])).toThrow('`messages[0].parts` to be a list')
})

test('UI-22 answersOf takes answered approvals, and outputs for questions that wait; others are left out', () => {
  const item = (kind: PendingItem['kind'], callId: string): PendingItem => ({
    ...{ kind, callId, toolName: 'a', arguments: '{}', path: ['run_1'] },
  })
  const pending = [
    item('approval', 'call_1'),
    item('question', 'call_2'),
    item('question', 'call_3'),
    item('unknown_outcome', 'call_4'),
    item('approval', 'call_5'),
  ]
  const approved = (id: string, isApproved: boolean, reason?: string): object => ({
    ...{ type: 'dynamic-tool', toolCallId: id, state: 'approval-responded' },
    approval: { id, approved: isApproved, ...(reason !== undefined && { reason }) },
  })
  const parts = [
    approved('call_1', false, 'Too much.'),
    { type: 'dynamic-tool', toolCallId: 'call_2', state: 'output-available', output: 'red' },
    { type: 'dynamic-tool', toolCallId: 'call_3', state: 'output-error', errorText: 'No time.' },
    { type: 'dynamic-tool', toolCallId: 'call_4', state: 'output-available', output: { outcome: 'happened' } },
    { type: 'dynamic-tool', toolCallId: 'call_5', state: 'approval-requested', approval: { id: 'call_5' } },
    approved('call_9', true),
  ] as readonly Readonly<Record<string, unknown>>[]
  const messages = [{ id: 'run_1', role: 'assistant', parts }]
  expect(pendingAnswers(messages, pending)).toEqual([
    { callId: 'call_1', approved: false, reason: 'Too much.' },
    { callId: 'call_2', answer: 'red' },
    { callId: 'call_3', declined: true, reason: 'No time.' },
    { callId: 'call_4', answer: { outcome: 'happened' } },
  ])
  const given = [{ callId: 'call_1', approved: true }]
  expect(pendingAnswers(messages, pending.slice(0, 1), given)).toEqual(given)
  expect(pendingAnswers([{ id: 'm1', role: 'user', parts }], pending)).toEqual([])
})
