import { describe, expect, test } from 'vitest'
import type { UIMessage } from 'ai7'
import { memoryLog } from 'thinharness'
import { Sessions } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { createHandlers, localOnly } from 'thinharness/ui'
import type { HandlerOptions } from 'thinharness/ui'
import { harnessOf, tool } from '../../../harness/support.js'
import { gate, processLog, sessionsOf } from '../../../session/support.js'
import { fetchOf, plainChat } from '../support/chats.js'
import type { PlainChat } from '../support/chats.js'

type Dialect = 5 | 6 | 7

/** A conversation whose process has ended in the middle of an answer, and the process after it. */
async function crashed(dialect: Dialect, { steps = 1, ...options }: Partial<HandlerOptions> & { steps?: number } = {}) {
  const log = memoryLog()
  const first = processLog(log)
  const { opened: asked, open } = gate()
  const model = new ScriptedModel()
  for (let step = 0; step < steps; step += 1) model.calls('look')
  model.replies(({ options: request }) => {
    request.onDelta?.({ kind: 'text_delta', text: 'One is' })
    open()
    return new Promise(() => undefined)
  })
  const tools = [tool('look', () => 'seen')]
  const before = new Sessions({ log: first.log, harness: harnessOf({ model, tools }) })
  const body = { id: 'c1', messages: [{ id: 'one', role: 'user', parts: [{ type: 'text', text: 'One?' }] }] }
  const { aiSdk } = createHandlers({ sessions: before, authorize: localOnly })
  await aiSdk(new Request('http://localhost/api/chat', { method: 'POST', body: JSON.stringify(body) }))
  await asked
  await first.kill()
  const next = new ScriptedModel().says('One it is.').says('Two it is.')
  const sessions = sessionsOf({ log, harness: harnessOf({ model: next, tools }) })
  const handlers = createHandlers({ sessions, authorize: localOnly, ...options })
  const stored = async (): Promise<UIMessage[]> => {
    const url = `http://localhost/api/threads/c1/messages?format=ui&dialect=${dialect}`
    return (await (await handlers.requests(new Request(url))).json()) as UIMessage[]
  }
  const fetch = fetchOf(dialect, handlers.aiSdk)
  return { fetch, stored, next, reload: async () => plainChat(dialect, { fetch, messages: await stored() }) }
}

/** Roles, and what each message says. */
function said({ messages }: Pick<PlainChat, 'messages'>): string[] {
  return messages.map(({ role, parts }) => {
    const texts = parts.flatMap((part) =>
      'text' in part ? [part.text] : part.type === 'step-start' ? [] : [part.type],
    )
    return `${role}: ${texts.join(' ')}`
  })
}

describe.each([5, 6, 7] as const)('AI SDK %s: after a crash in the middle of an answer', (dialect) => {
  test('a page that is opened again has no empty message, and gets the rest of the answer', async () => {
    const { reload, stored } = await crashed(dialect, { steps: 0 })
    const page = await reload()
    expect(said(page)).toEqual(['user: One?'])
    await page.resumeStream()
    expect([page.error, page.status]).toEqual([undefined, 'ready'])
    expect(said(page)).toEqual(['user: One?', 'assistant: One it is.'])
    expect(said({ messages: await stored() })).toEqual(said(page))
  })

  test('the answer can be asked for again', async () => {
    const { reload, stored } = await crashed(dialect)
    const page = await reload()
    expect(said(page)).toEqual(['user: One?', 'assistant: dynamic-tool'])
    await page.regenerate()
    expect(page.error).toBeUndefined()
    expect(said(page)).toEqual(['user: One?', 'assistant: One it is.'])
    expect(said({ messages: await stored() })).toEqual(said(page))
  })

  test('the next message has its answer below it, on the page and when it is opened again', async () => {
    const { reload, stored } = await crashed(dialect, { steps: 0 })
    const page = await reload()
    await page.sendMessage({ text: 'Two?' })
    expect(page.error).toBeUndefined()
    expect(said(page)).toEqual(['user: One?', 'user: Two?', 'assistant: Two it is.'])
    const all = ['user: One?', 'assistant: One it is.', 'user: Two?', 'assistant: Two it is.']
    expect(said({ messages: await stored() })).toEqual(all)
  })
})

test('a page that may only read continues no run: it is told that the answer was interrupted', async () => {
  const { fetch, next } = await crashed(7, {
    authorize: (_request, { action }) => action === 'read' && { resourceId: 'local' },
  })
  for (const query of ['', '?replay=1']) {
    const text = await (await fetch(`/api/chat/c1/stream${query}`)).text()
    expect(text).toContain('"finishReason":"interrupted"')
  }
  expect(next.requests).toHaveLength(0)
})

test('a reader that comes back by itself does not continue what may end the process again', async () => {
  const { fetch, next } = await crashed(7)
  expect(await (await fetch('/api/chat/c1/stream?replay=1')).text()).toContain('"finishReason":"interrupted"')
  expect(next.requests).toHaveLength(0)
})
