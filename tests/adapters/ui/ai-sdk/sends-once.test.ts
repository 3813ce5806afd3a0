import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { memoryLog } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { createHandlers } from 'thinharness/ui'
import type { Dialect } from 'thinharness/ui'
import { whenAnswered } from 'thinharness/ui/client'
import { harnessOf, tool, until } from '../../../harness/support.js'
import { fetchOf, plainChat } from '../support/chats.js'
import type { ChatOptions, PlainChat } from '../support/chats.js'

/** A chat over a run that calls these tools at once and then ends. */
function chatWith(dialect: Dialect, names: readonly string[], sendsWhen: ChatOptions['sendsWhen']) {
  const log = memoryLog()
  const model = new ScriptedModel().callsAll(names.map((name) => ({ name }))).says('Done.')
  const tools = [
    tool('look', () => 'seen'),
    tool('pay', () => 'paid', { requiresApproval: true }),
    tool('write', () => 'written', { sequential: true }),
    tool('ask', (_, { ask }) => ask('Which?', z.string())),
  ]
  const harness = harnessOf({ model, tools, log })
  onTestFinished(() => harness.close())
  const { aiSdk } = createHandlers({ harness, log })
  const posts: Response[] = []
  const fetched = fetchOf(dialect, async (request) => {
    const response = await aiSdk(request)
    if (request.method === 'POST') posts.push(response)
    return response
  })
  return { chat: plainChat(dialect, { fetch: fetched, ...(sendsWhen && { sendsWhen }) }), posts }
}

function waitingIn(chat: PlainChat): readonly { readonly callId: string; readonly kind: string }[] {
  const part = chat.messages.at(-1)?.parts.findLast(({ type }) => type === 'data-pending')
  return (part as { readonly data?: { readonly items: [] } } | undefined)?.data?.items ?? []
}

const BATCHES: readonly (readonly string[])[] = [
  ['pay'],
  ['pay', 'pay'],
  ['look', 'pay'],
  ['pay', 'write'],
  ['look', 'pay', 'write', 'pay', 'look'],
]

describe.each([6, 7] as const)('AI SDK %s', (dialect) => {
  test.each(BATCHES)('UI-20 the helper sends once when all approvals are answered: %s', async (...names) => {
    const { chat, posts } = chatWith(dialect, names, 'helper')
    await chat.sendMessage({ text: 'Go.' })
    expect(chat.error).toBeUndefined()
    const waiting = waitingIn(chat)
    expect(waiting).toHaveLength(names.filter((name) => name === 'pay').length)
    for (const [index, { callId }] of waiting.entries()) {
      expect(posts).toHaveLength(1)
      await chat.addToolApprovalResponse({ id: callId, approved: index !== 1 })
    }
    await until(() => chat.messages.at(-1)?.parts.at(-1)?.type === 'text' || chat.error !== undefined)
    await until(() => chat.status !== 'streaming')
    expect(chat.error).toBeUndefined()
    expect(posts.map(({ status }) => status)).toEqual([200, 200])
    expect(chat.messages).toHaveLength(2)
    expect(chat.messages[1]?.parts.at(-1)).toMatchObject({ type: 'text', text: 'Done.' })
  })
})

test('UI-20 a run that waits for a question alone is not sent by the helper', async () => {
  for (const names of [['ask'], ['look', 'ask']]) {
    const { chat, posts } = chatWith(7, names, 'helper')
    await chat.sendMessage({ text: 'Go.' })
    expect(chat.error).toBeUndefined()
    expect(posts).toHaveLength(1)
  }
})

test('UI-20 after the approvals, the question that is left is waited for', async () => {
  const { chat, posts } = chatWith(7, ['ask', 'pay'], 'helper')
  await chat.sendMessage({ text: 'Go.' })
  await chat.addToolApprovalResponse({ id: 'call_2', approved: true })
  await until(() => posts.length === 2 && chat.status === 'ready')
  expect(chat.error).toBeUndefined()
  expect(waitingIn(chat)).toMatchObject([{ callId: 'call_1', kind: 'question' }])
  expect(posts).toHaveLength(2)
  await chat.sendMessage(undefined, { body: { answers: [{ callId: 'call_1', answer: 'red' }] } })
  expect(chat.error).toBeUndefined()
  const calls = chat.messages[1]?.parts.filter(({ type }) => type === 'dynamic-tool')
  expect(calls).toMatchObject([
    { state: 'output-available', output: 'red' },
    { state: 'output-available', output: 'paid' },
  ])
})

describe.each([5, 6, 7] as const)('AI SDK %s', (dialect) => {
  test('UI-21 whenAnswered sends once for each pause, for questions too', async () => {
    // A call that asks a question begins when the approvals of its batch are answered.
    const names = dialect === 5 ? ['ask', 'look'] : ['ask', 'pay', 'look']
    const { chat, posts } = chatWith(dialect, names, whenAnswered)
    await chat.sendMessage({ text: 'Go.' })
    expect(chat.error).toBeUndefined()
    expect(posts).toHaveLength(1)
    if (dialect !== 5) {
      await chat.addToolApprovalResponse({ id: 'call_2', approved: true })
      await until(
        () => (waitingIn(chat)[0]?.kind === 'question' && chat.status === 'ready') || chat.error !== undefined,
      )
      expect(posts).toHaveLength(2)
    }
    const before = posts.length
    await chat.addToolOutput({ tool: 'ask', toolCallId: 'call_1', output: 'red' })
    await until(() => chat.messages.at(-1)?.parts.at(-1)?.type === 'text' || chat.error !== undefined)
    await until(() => chat.status !== 'streaming')
    expect(chat.error).toBeUndefined()
    expect(posts).toHaveLength(before + 1)
    const asked = chat.messages[1]?.parts.find((part) => 'toolCallId' in part && part.toolCallId === 'call_1')
    expect(asked).toMatchObject({ state: 'output-available', output: 'red' })
  })
})
