import { describe, expect, onTestFinished, test } from 'vitest'
import type { UIMessage } from 'ai7'
import { memoryLog } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { createHandlers } from 'thinharness/ui'
import type { Dialect, Handlers } from 'thinharness/ui'
import { runTransport } from 'thinharness/ui/client'
import { gate, harnessOf, tool, until } from '../../../harness/support.js'
import type { Gate } from '../../../harness/support.js'
import { fetchOf, plainChat } from '../support/chats.js'
import type { ChatOptions, PlainChat } from '../support/chats.js'
import { oneIn, timeLimit } from '../../../support/length.js'

interface Served extends Handlers {
  /** The run ends when it is opened. */
  readonly held: Gate
}

function served(): Served {
  const log = memoryLog()
  const held = gate()
  const model = new ScriptedModel()
    .replies({ reasoning: 'Grüße?', text: 'Let me look.', calls: [{ name: 'look', arguments: { at: '世界' } }] })
    .waits(held.opened)
    .says('Seen: 👋.')
  const harness = harnessOf({ model, tools: [tool('look', () => 'seen')], log })
  onTestFinished(() => harness.close())
  return { ...createHandlers({ harness, log }), held }
}

/** A body that breaks off after so many bytes, as a lost connection does. */
function cutAfter(response: Response, bytes: number): Response {
  let left = bytes
  const cut = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      const piece = chunk.slice(0, left)
      left -= piece.length
      if (piece.length > 0) controller.enqueue(piece)
      if (left === 0) controller.error(new TypeError('network error'))
    },
  })
  return new Response(response.body?.pipeThrough(cut), response)
}

/** The requests of a chat whose first response breaks off. */
function losing(dialect: Dialect, { aiSdk, held }: Served, bytes: number): ChatOptions['fetch'] {
  let isFirst = true
  held.open()
  return fetchOf(dialect, async (request) => {
    const response = await aiSdk(request)
    const isLost = isFirst && bytes < Infinity
    isFirst = false
    return isLost ? cutAfter(response, bytes) : response
  })
}

async function whole(dialect: Dialect): Promise<UIMessage[]> {
  const chat = plainChat(dialect, { fetch: losing(dialect, served(), Infinity) })
  await chat.sendMessage({ text: 'Look.' })
  expect(chat.error).toBeUndefined()
  return comparable(chat)
}

/** The messages without times. */
function comparable({ messages }: PlainChat): UIMessage[] {
  const text = JSON.stringify(messages).replaceAll(/"(startedAt|endedAt)":"[^"]*"/g, '"$1":""')
  return JSON.parse(text) as UIMessage[]
}

async function sizeOf(dialect: Dialect): Promise<number> {
  const { aiSdk, held } = served()
  held.open()
  const body = JSON.stringify({
    id: 'c1',
    messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Look.' }] }],
  })
  const response = await fetchOf(dialect, aiSdk)('/api/chat', { method: 'POST', body })
  return (await response.arrayBuffer()).byteLength
}

/** Places of cuts: one of so many bytes, since each takes a while. */
const STEP = oneIn(51)

async function cutsOf(dialect: Dialect): Promise<readonly number[]> {
  const size = await sizeOf(dialect)
  const first = 1 + Math.floor(Math.random() * STEP)
  return Array.from({ length: Math.ceil(size / STEP) }, (_, index) => index * STEP + first)
}

describe.each([5, 6, 7] as const)('AI SDK %s', (dialect) => {
  test(
    'UI-33 a connection that is lost anywhere is continued by runTransport',
    { timeout: timeLimit(60_000) },
    async () => {
      const expected = await whole(dialect)
      for (const bytes of await cutsOf(dialect)) {
        const fetched = losing(dialect, served(), bytes)
        const transport = runTransport({ api: '/api/chat', dialect, fetch: fetched as typeof fetch })
        const chat = plainChat(dialect, { fetch: fetched, transport })
        await chat.sendMessage({ text: 'Look.' })
        expect(chat.error, `after ${bytes} bytes`).toBeUndefined()
        expect(comparable(chat), `after ${bytes} bytes`).toEqual(expected)
      }
    },
  )
})

describe.each([6, 7] as const)('AI SDK %s', (dialect) => {
  test(
    'UI-30 a connection that is lost anywhere is resumed with the same messages',
    { timeout: timeLimit(60_000) },
    async () => {
      const expected = await whole(dialect)
      for (const bytes of await cutsOf(dialect)) {
        const requests = losing(dialect, served(), bytes)
        const chat = plainChat(dialect, {
          fetch: (url, init) => requests(init?.method === 'POST' ? url : `${url}?replay=1`, init),
        })
        await chat.sendMessage({ text: 'Look.' })
        if (chat.status === 'error') await chat.resumeStream()
        expect(chat.error, `after ${bytes} bytes`).toBeUndefined()
        expect(comparable(chat), `after ${bytes} bytes`).toEqual(expected)
      }
    },
  )
})

describe.each([5, 6, 7] as const)('AI SDK %s', (dialect) => {
  test('UI-27 UI-28 UI-29 RQ-20 RQ-21 a page that is opened in mid-answer gets the whole message; later there is nothing to resume', async () => {
    const server = served()
    const requests = fetchOf(dialect, server.aiSdk)
    const first = plainChat(dialect, { fetch: requests })
    const sent = first.sendMessage({ text: 'Look.' })
    await until(() => first.messages.length === 2)
    const second = plainChat(dialect, { fetch: requests, messages: first.messages.slice(0, 1) })
    const resumed = second.resumeStream()
    await until(() => second.messages.length === 2)
    server.held.open()
    await Promise.all([sent, resumed])
    expect([first.error, second.error]).toEqual([undefined, undefined])
    expect(comparable(second)).toEqual(comparable(first))
    const after = await requests('/api/chat/c1/stream')
    expect(after.status).toBe(204)
    const replayed = await requests('/api/chat/c1/stream?replay=1')
    expect(replayed.status).toBe(200)
    expect(await replayed.text()).toContain('"Seen: 👋."')
    const stored = await server.requests(
      new Request(`http://localhost/api/threads/c1/messages?format=ui&dialect=${dialect}`),
    )
    const kept = { messages: (await stored.json()) as UIMessage[] } as PlainChat
    expect(comparable(kept)).toMatchObject(comparable(first).map(({ id, role, parts }) => ({ id, role, parts })))
  })
})

test('UI-34 stop of the transport stops the run', async () => {
  const server = served()
  const handle = (request: Request): Promise<Response> =>
    request.url.includes('/threads/') ? server.requests(request) : server.aiSdk(request)
  const fetched = fetchOf(7, handle)
  const transport = runTransport({ fetch: fetched as typeof fetch })
  const chat = plainChat(7, { fetch: fetched, transport })
  const sent = chat.sendMessage({ text: 'Look.' })
  await until(() => chat.messages.length === 2)
  await transport.stop('c1')
  await sent
  expect(chat.error).toBeUndefined()
  expect(chat.messages[1]?.metadata).toMatchObject({ stopReason: 'cancelled' })
})
