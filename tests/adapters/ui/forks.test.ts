import { expect, onTestFinished, test } from 'vitest'
import { memoryLog } from 'thinharness'
import { Sessions, reduceChat } from 'thinharness/session'
import type { Chat, ChatSnapshot } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { createHandlers } from 'thinharness/ui'
import type { AnyRunEvent } from 'thinharness/ui'
import { harnessOf, tool } from '../../harness/support.js'
import { fetchOf, plainChat } from './support/chats.js'

const BASE = 'http://localhost/api'

interface Shown {
  readonly id: string
  readonly role: string
  readonly content?: string
  readonly metadata?: object
  readonly parts?: readonly { readonly type: string; readonly text?: string; readonly state?: string }[]
}

/** A conversation of two messages; the reply to the second one calls a tool twice. */
async function twoMessages() {
  const model = new ScriptedModel().says('One.').calls('look', {}, { text: 'First.' }).calls('look').says('Two.')
  const all = new Sessions({
    log: memoryLog(),
    harness: harnessOf({ model, tools: [tool('look', () => 'seen')] }),
  })
  onTestFinished(() => all.close())
  const sessions = all.for({ resourceId: 'local' })
  const chat = await sessions.create({ threadId: 'c1' })
  for (const text of ['1', '2']) await (await chat.send(text, { messageId: `m${text}` })).done
  const { requests, aiSdk, agUi } = createHandlers({ sessions: all })
  const messages = async (threadId: string, format: string): Promise<readonly Shown[]> => {
    const response = await requests(new Request(`${BASE}/threads/${threadId}/messages?format=${format}`))
    return (await response.json()) as readonly Shown[]
  }
  return { model, sessions, chat, messages, aiSdk, agUi }
}

/** The id of an entry for `fork`: of a reply of the last run. */
function replyOf({ snapshot }: Pick<Chat, 'snapshot'>, index: number): string {
  const run = snapshot.runs.at(-1)
  const reply = run?.entries.filter(({ role }) => role === 'assistant')[index]
  return `${run?.runId}.${reply?.id}`
}

test.each(['ui', 'agui', 'native'])(
  'UI-37 a page that opens a fork has the messages that it continues, in the form %s',
  async (format) => {
    const { sessions, messages } = await twoMessages()
    const fork = await sessions.fork('c1')
    const again = await sessions.fork(fork.threadId)
    const before = JSON.stringify(await messages('c1', format))
    expect(before).toContain('Two.')
    for (const { threadId } of [fork, again]) {
      // The metadata of a message names the conversation that shows it.
      const shown = JSON.stringify(await messages(threadId, format))
      expect(shown.replaceAll(`"threadId":"${threadId}"`, '"threadId":"c1"')).toBe(before)
    }
  },
)

test('UI-37 a fork in the middle of a reply has the reply up to there, and goes on behind it', async () => {
  const { model, sessions, chat, messages, aiSdk } = await twoMessages()
  const fork = await sessions.fork('c1', { after: replyOf(chat, 0) })
  const shown = await messages(fork.threadId, 'ui')
  expect(shown.map(({ id, role }) => [id, role])).toEqual(
    (await messages('c1', 'ui')).map(({ id, role }) => [id, role]),
  )
  expect(shown.map(({ parts = [] }) => parts.map(({ type, text, state }) => text ?? state ?? type))).toEqual([
    ['1'],
    ['step-start', 'One.'],
    ['2'],
    ['step-start', 'First.', 'output-available'],
  ])
  const page = plainChat(7, { fetch: fetchOf(7, aiSdk), id: fork.threadId, messages: shown as never })
  model.says('Three.')
  await page.sendMessage({ text: '3' })
  expect(await messages(fork.threadId, 'ui')).toEqual(JSON.parse(JSON.stringify(page.messages)))
  const agUi = await messages(fork.threadId, 'agui')
  expect(agUi.map(({ role, content }) => [role, content])).toEqual([
    ['user', '1'],
    ['assistant', 'One.'],
    ['user', '2'],
    ['assistant', 'First.'],
    ['tool', expect.stringContaining('seen')],
    ['user', '3'],
    ['assistant', 'Three.'],
  ])
})

test('UI-37 a fork before a message has what was said before it; one at a prompt has the prompt', async () => {
  const { sessions, chat, messages } = await twoMessages()
  const [first, second] = chat.snapshot.runs
  const texts = async (after: string): Promise<unknown> => {
    const fork = await sessions.fork('c1', { after })
    const native = (await messages(fork.threadId, 'native')) as unknown as readonly AnyRunEvent[]
    let snapshot: ChatSnapshot | undefined
    for (const event of native) snapshot = reduceChat(snapshot, event)
    return snapshot?.runs.map(({ prompt, entries }) => [prompt, entries.length])
  }
  expect(await texts(first?.runId ?? '')).toEqual([[[{ type: 'text', text: '1' }], 1]])
  expect(await texts(`${second?.runId}.${second?.promptId}`)).toEqual([
    [[{ type: 'text', text: '1' }], 1],
    [[{ type: 'text', text: '2' }], 0],
  ])
})
