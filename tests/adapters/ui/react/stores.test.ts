import { expect, test } from 'vitest'
import { ScriptedModel } from 'thinharness/testing'
import { chatItems, createChatThreadStore, createRunStore, loadChatThread } from 'thinharness/ui/store'
import type { ChatThreadOptions, ChatThreadStore } from 'thinharness/ui/store'
import { localOnly } from 'thinharness/ui'
import { served } from '../support/served.js'
import { API, Page, watch } from './support.js'

function paged(model: ScriptedModel): Page {
  return new Page(served('sessions', model, { authorize: localOnly }))
}

function chatOf(page: Page, options: Partial<ChatThreadOptions> = {}): ChatThreadStore {
  return createChatThreadStore({ threadId: 't1', api: API, fetch: page.fetch, ...options })
}

const told = (chat: ChatThreadStore): readonly string[] =>
  chatItems(chat.getSnapshot().runs).map((item) => {
    if (item.kind === 'call') return `${item.call.toolName} ${item.call.status}`
    if (item.kind === 'user') return `> ${item.content.map((part) => (part.type === 'text' ? part.text : '')).join('')}`
    return item.kind === 'ended' ? item.status : item.text
  })

test('a conversation begins with its first message, and is followed to its answer', async () => {
  const page = paged(new ScriptedModel().calls('look').says('Seen.'))
  // Each state is seen, however short.
  const chat = chatOf(page, { throttleMs: 0 })
  expect(chat.getSnapshot()).toMatchObject({ connection: 'closed', phase: 'idle', runs: [], snapshot: null })
  const { until } = watch(chat)
  await until(({ connection }) => connection === 'absent')
  const sent = chat.send('Hi.')
  expect(chat.getSnapshot().error).toBeNull()
  await until(({ sending }) => sending.length === 1)
  expect(await sent).toMatchObject({ ok: true, status: 'started' })
  await until(({ runs }) => runs.at(-1)?.status === 'completed')
  expect(told(chat)).toEqual(['> Hi.', 'look completed', 'Seen.'])
  expect(chat.getSnapshot()).toMatchObject({
    connection: 'open',
    phase: 'idle',
    title: 'Hi.',
    sending: [],
    error: null,
  })
})

test('subscribers share one connection; it is closed after the last, and continues where it was', async () => {
  const page = paged(new ScriptedModel().says('One.').says('Two.'))
  const chat = chatOf(page)
  await chat.send('First.')
  const [first, second] = [watch(chat), watch(chat)]
  await first.until(({ runs }) => runs.at(-1)?.status === 'completed')
  expect(page.connections).toBe(1)
  first.end()
  await Promise.resolve()
  expect(page.connections).toBe(1)
  second.end()
  // As React's StrictMode does: the subscriber that comes back at once finds the connection open.
  const third = watch(chat)
  await Promise.resolve()
  expect(page.connections).toBe(1)
  third.end()
  await expect.poll(() => page.connections).toBe(0)
  expect(chat.getSnapshot()).toMatchObject({ connection: 'closed' })
  const before = chat.getSnapshot().runs[0]
  await chat.send('Second.')
  await watch(chat).until(({ runs }) => runs.length === 2 && runs[1]?.status === 'completed')
  // What was read before is not read again.
  expect(chat.getSnapshot().runs[0]).toBe(before)
  expect(page.followed).toHaveLength(2)
})

test('a lost connection is opened again, and nothing is shown twice', async () => {
  const page = paged(new ScriptedModel().says('One.').says('Two.'))
  const chat = chatOf(page)
  const { until, states } = watch(chat)
  await chat.send('First.')
  await until(({ runs }) => runs.at(-1)?.status === 'completed')
  page.refusals.push(new TypeError('fetch failed'))
  page.cut()
  await until(({ connection }) => connection === 'reconnecting')
  // A request that succeeds does not wait for the next attempt.
  await chat.send('Second.')
  await until(({ runs }) => runs[1]?.status === 'completed')
  expect(told(chat)).toEqual(['> First.', 'One.', '> Second.', 'Two.'])
  expect(states.every(({ error }) => error === null)).toBe(true)
})

test('an approval, a rejection and a question are answered; the calls are named while that is under way', async () => {
  const model = new ScriptedModel().calls('pay').says('Paid.').calls('pay').says('Not paid.').calls('ask').says('Red.')
  const chat = chatOf(paged(model), { throttleMs: 0 })
  const { until, states } = watch(chat)
  await chat.send('Pay.')
  const { pending } = await until(({ phase }) => phase === 'waiting')
  const callId = pending[0]?.callId ?? ''
  expect(await chat.approve(callId)).toMatchObject({ ok: true })
  await until(({ phase, runs }) => phase === 'idle' && runs.length === 1)
  expect(states.some(({ answering }) => answering.includes(callId))).toBe(true)
  expect(chat.getSnapshot()).toMatchObject({ answering: [], pending: [] })
  await chat.send('Pay again.')
  await until(({ pending: items }) => items.length === 1)
  await chat.reject(chat.getSnapshot().pending[0]?.callId ?? '', 'Too much.')
  await until(({ runs, phase }) => runs.length === 2 && phase === 'idle')
  await chat.send('Ask.')
  await until(({ pending: items }) => items[0]?.kind === 'question')
  await chat.reply(chat.getSnapshot().pending[0]?.callId ?? '', 'red')
  await until(({ runs, phase }) => runs.length === 3 && phase === 'idle')
  expect(told(chat).filter((line) => !line.startsWith('>'))).toEqual([
    ...['pay completed', 'Paid.', 'pay failed', 'Not paid.', 'ask completed', 'Red.'],
  ])
})

test('an answer that nothing waits for is refused: the outcome says why, nothing is thrown, and the page goes on', async () => {
  const errors: Error[] = []
  const chat = chatOf(paged(new ScriptedModel().calls('pay').says('Paid.')), { onError: (error) => errors.push(error) })
  const { until } = watch(chat)
  await chat.send('Pay.')
  const { pending } = await until(({ phase }) => phase === 'waiting')
  const outcome = await chat.approve('call_of_nobody')
  expect(outcome).toMatchObject({ ok: false, error: { name: 'FollowError' } })
  const { error } = await until((state) => state.error !== null)
  expect(errors).toEqual([error])
  expect(chat.getSnapshot().answering).toEqual([])
  await chat.approve(pending[0]?.callId ?? '')
  await until(({ phase, error: problem }) => phase === 'idle' && problem === null)
})

test('a message that could not be sent is kept, and sent again once under the same id', async () => {
  const page = paged(new ScriptedModel().says('Hello.'))
  const chat = chatOf(page)
  const { until } = watch(chat)
  await until(({ connection }) => connection === 'absent')
  page.refusals.push(new TypeError('fetch failed'))
  expect(await chat.send('Hi.')).toMatchObject({ ok: false })
  const { sending, error } = await until((state) => state.sending[0]?.status === 'failed')
  expect(error?.message).toBe('The server could not be reached. Try again.')
  const { messageId = '' } = sending[0] ?? {}
  expect(await chat.resend(messageId)).toMatchObject({ ok: true, messageId })
  await until(({ runs }) => runs.at(-1)?.status === 'completed')
  expect(told(chat)).toEqual(['> Hi.', 'Hello.'])
  page.refusals.push(new Response('{"message":"Too long."}', { status: 413 }))
  await chat.send('Long.')
  const failed = await until((state) => state.sending.length === 1)
  expect(failed.error?.message).toBe('Too long.')
  chat.discard(failed.sending[0]?.messageId ?? '')
  await until((state) => state.sending.length === 0)
  expect(await chat.resend('nobody')).toMatchObject({ ok: false })
})

test('a message is answered again: the last one, one by its id, and one whose run failed', async () => {
  const model = new ScriptedModel()
    .says('One.')
    .says('Other.')
    .says('Two.')
    .fails('Broken.')
    .says('Again.')
    .says('First.')
  const chat = chatOf(paged(model))
  const { until } = watch(chat)
  const ended = (count: number, text: string): Promise<unknown> =>
    until(({ runs, phase }) => phase === 'idle' && runs.length === count && told(chat).at(-1) === text)
  const first = await chat.send('Hi.')
  await ended(1, 'One.')
  expect(await chat.regenerate()).toMatchObject({ ok: true, status: 'started' })
  await ended(1, 'Other.')
  await chat.send('And now?')
  await ended(2, 'Two.')
  await chat.send('Fail.')
  await until(({ runs, phase }) => phase === 'idle' && runs.at(-1)?.status === 'failed')
  await chat.regenerate()
  await ended(3, 'Again.')
  await chat.regenerate(first.ok ? first.messageId : '')
  await ended(1, 'First.')
  expect(told(chat)).toEqual(['> Hi.', 'First.'])
  expect(await chat.regenerate('nobody')).toMatchObject({ ok: false })
})

test('queue, mode, title, stop: what a page can do with a conversation', async () => {
  const chat = chatOf(paged(new ScriptedModel().calls('pay').says('Paid.').says('Next.')))
  const { until } = watch(chat)
  await chat.send('Pay.')
  await until(({ phase }) => phase === 'waiting')
  await chat.send('Later.', { whenBusy: 'queue' })
  await chat.send('Never.', { whenBusy: 'queue' })
  const { queue } = await until((state) => state.queue.length === 2)
  await chat.unqueue(queue[1]?.messageId ?? '')
  await until((state) => state.queue.length === 1)
  await chat.rename('Payments')
  await until(({ title }) => title === 'Payments')
  await chat.stop()
  await until(({ held }) => held)
  await chat.releaseQueue()
  await until(({ runs }) => runs.length === 2 && runs[1]?.status === 'completed')
  expect(told(chat)).toContain('cancelled')
})

test('what the server refuses ends the connection with its reason, and a new login opens it again', async () => {
  const page = paged(new ScriptedModel().says('Hello.'))
  const chat = chatOf(page, { headers: () => Promise.resolve({ authorization: 'old' }) })
  page.refusals.push(new Response('{"message":"Log in."}', { status: 401 }))
  const { until } = watch(chat)
  const { error } = await until(({ connection }) => connection === 'failed')
  expect(error?.message).toBe('Log in.')
  chat.reconnect()
  await until(({ connection }) => connection === 'absent')
  await chat.send('Hi.')
  await until(({ runs, error: problem }) => runs.at(-1)?.status === 'completed' && problem === null)
})

test('a snapshot is the same object until something changes, and only what changed is another', async () => {
  const chat = chatOf(paged(new ScriptedModel().says('One.').calls('look').says('Two.')), { throttleMs: 0 })
  const { until, states } = watch(chat)
  await chat.send('First.')
  const first = await until(({ runs }) => runs.at(-1)?.status === 'completed')
  chat.clearError()
  await new Promise((resolve) => setTimeout(resolve, 0))
  expect(chat.getSnapshot()).toBe(first)
  await chat.send('Second.')
  await until(({ runs }) => runs[1]?.status === 'completed')
  expect(new Set(states).size).toBe(states.length)
  const { runs } = chat.getSnapshot()
  expect(runs[0]).toBe(first.runs[0])
  expect(chatItems(runs).slice(0, 2)).toEqual(chatItems(first.runs))
  expect(chatItems(runs)[0]).toBe(chatItems(first.runs)[0])
  // Of a run that goes on, too: what has not changed is the same item in every state.
  const calls = states.flatMap((state) => chatItems(state.runs).filter((item) => item.kind === 'call'))
  const done = calls.filter(({ call }) => call.status === 'completed')
  expect(done.length).toBeGreaterThan(1)
  expect(new Set(done).size).toBe(1)
})

test('what was loaded on a server is shown at once, and the store continues from there', async () => {
  const page = paged(new ScriptedModel().says('One.').says('Two.'))
  const options = { threadId: 't1', api: API, fetch: page.fetch }
  expect(await loadChatThread(options)).toBeNull()
  await chatOf(page).send('First.')
  await expect.poll(async () => (await loadChatThread(options))?.snapshot.runs.at(-1)?.status).toBe('completed')
  const initial = await loadChatThread(options)
  const chat = chatOf(page, { initial: JSON.parse(JSON.stringify(initial)) as typeof initial })
  expect(told(chat)).toEqual(['> First.', 'One.'])
  expect(chat.getServerSnapshot()).toBe(chat.getSnapshot())
  const events: string[] = []
  chat.configure({ ...options, onEvent: ({ kind }) => events.push(kind) })
  const { until } = watch(chat)
  await chat.send('Second.')
  await until(({ runs }) => runs[1]?.status === 'completed')
  expect(events).not.toContain('thread_opened')
  expect(events).toContain('model_message')
  page.refusals.push(new Response('{"message":"No."}', { status: 403 }))
  await expect(loadChatThread(options)).rejects.toThrow('No.')
})

test('a run is followed across its pause to its end', async () => {
  const page = paged(new ScriptedModel().calls('pay').says('Paid.'))
  const sent = await chatOf(page).send('Pay.')
  const runId = sent.ok ? (sent.runId ?? '') : ''
  const run = createRunStore({ runId, api: API, fetch: page.fetch })
  expect(run.getSnapshot()).toMatchObject({ status: 'loading', text: '', run: null })
  const { until } = watch(run)
  const { pending } = await until(({ status, connection }) => status === 'paused' && connection === 'ended')
  expect(await run.approve(pending[0]?.callId ?? '')).toMatchObject({ ok: true })
  const { text, answering } = await until(({ status }) => status === 'completed')
  expect({ text, answering }).toEqual({ text: 'Paid.', answering: [] })
  await until(({ connection }) => connection === 'ended')
  expect(page.connections).toBe(0)
})

test('a run that does not exist is an error', async () => {
  const run = createRunStore({ runId: 'nobody', api: API, fetch: paged(new ScriptedModel()).fetch })
  const { error } = await watch(run).until(({ connection }) => connection === 'failed')
  expect(error).toMatchObject({ name: 'FollowError', status: 404 })
})
