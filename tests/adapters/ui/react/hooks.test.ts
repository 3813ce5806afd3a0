import { act, createElement } from 'react'
import type { ReactNode } from 'react'
import { renderToString } from 'react-dom/server'
import { expect, expectTypeOf, test } from 'vitest'
import { ScriptedModel } from 'thinharness/testing'
import { localOnly } from 'thinharness/ui'
import {
  chatItems,
  createChatThreadStore,
  loadChatThread,
  useChatThread,
  useChatThreadStore,
  useRun,
  useStore,
} from 'thinharness/ui/react'
import type { ChatThread, ChatThreadOptions, ChatThreadState, ChatThreadStore, FollowedRun } from 'thinharness/ui/react'
import { served } from '../support/served.js'
import { mounted } from './mounted.js'
import { API, Page } from './support.js'

function paged(model: ScriptedModel): { readonly page: Page; readonly options: ChatThreadOptions } {
  const page = new Page(served('sessions', model, { authorize: localOnly }))
  return { page, options: { threadId: 't1', api: API, fetch: page.fetch, throttleMs: 0 } }
}

/** Waits in `act`, so that React renders what has come. */
async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await act(() => new Promise((resolve) => setTimeout(resolve, 1)))
}

test('a conversation in a component: sent, approved, answered; and nothing is open after it is unmounted', async () => {
  const { page, options } = paged(new ScriptedModel().calls('pay').says('Paid.'))
  let chat: ChatThread | undefined
  const Chat = (): null => {
    // The options are other objects each time.
    chat = useChatThread({ ...options, headers: { 'x-page': '1' } })
    return null
  }
  const { unmount } = await mounted(createElement(Chat))
  expect(chat).toMatchObject({ phase: 'idle', runs: [] })
  await act(async () => {
    await chat?.send('Pay.')
  })
  await until(() => chat?.phase === 'waiting')
  await act(async () => {
    await chat?.approve(chat.pending[0]?.callId ?? '')
  })
  await until(() => chat?.runs.at(-1)?.status === 'completed')
  expect(chatItems(chat?.runs ?? []).map(({ kind }) => kind)).toEqual(['user', 'call', 'assistant'])
  expect(page.connections).toBe(1)
  await unmount()
  expect(page.connections).toBe(0)
})

test('StrictMode opens one connection', async () => {
  const { page, options } = paged(new ScriptedModel().says('Hello.'))
  await createChatThreadStore(options).send('Hi.')
  const asked = page.asked.length
  let chat: ChatThread | undefined
  const Chat = (): null => {
    chat = useChatThread(options)
    return null
  }
  await mounted(createElement(Chat), true)
  await until(() => chat?.runs.at(-1)?.status === 'completed')
  expect(page.asked.slice(asked)).toEqual(['GET /threads/t1/events'])
})

test('a component renders again only when the part that it selects has changed', async () => {
  const { options } = paged(new ScriptedModel().calls('pay').says('Paid.'))
  const renders = { page: 0, phase: 0, pending: 0 }
  const phases: string[] = []
  const Phase = ({ chat }: { readonly chat: ChatThreadStore }): null => {
    renders.phase += 1
    phases.push(useStore(chat, ({ phase }: ChatThreadState) => phase))
    return null
  }
  const Pending = ({ chat }: { readonly chat: ChatThreadStore }): null => {
    renders.pending += 1
    // Another list each time, with the same members.
    useStore(chat, ({ pending }) => pending.map(({ toolName }) => toolName))
    return null
  }
  let store: ChatThreadStore | undefined
  const Owner = (): ReactNode => {
    renders.page += 1
    store = useChatThreadStore(options)
    const chat = store
    return [createElement(Phase, { chat, key: 'phase' }), createElement(Pending, { chat, key: 'pending' })]
  }
  await mounted(createElement(Owner))
  const chat = store
  if (chat === undefined) throw new Error('The component was not rendered.')
  await act(async () => {
    await chat.send('Pay.')
  })
  await until(() => chat.getSnapshot().phase === 'waiting')
  await act(async () => {
    await chat.approve(chat.getSnapshot().pending[0]?.callId ?? '')
  })
  await until(() => chat.getSnapshot().runs.at(-1)?.status === 'completed')
  expect(phases).toEqual(['idle', 'running', 'waiting', 'running', 'idle'])
  expect(renders).toEqual({ page: 1, phase: 5, pending: 3 })
})

test('another conversation is another store, and the first one is left', async () => {
  const { page, options } = paged(new ScriptedModel().says('Hello.'))
  await createChatThreadStore(options).send('Hi.')
  let chat: ChatThread | undefined
  const Chat = ({ threadId }: { readonly threadId: string }): null => {
    chat = useChatThread({ ...options, threadId })
    return null
  }
  const { render } = await mounted(createElement(Chat, { threadId: 't1' }))
  await until(() => chat?.runs.length === 1)
  await render(createElement(Chat, { threadId: 't2' }))
  expect(chat).toMatchObject({ threadId: 't2', runs: [] })
  await until(() => chat?.connection === 'absent')
  expect(page.connections).toBe(0)
  await render(createElement(Chat, { threadId: 't1' }))
  await until(() => chat?.runs.length === 1)
})

test('a run in a component', async () => {
  const { page, options } = paged(new ScriptedModel().calls('pay').says('Paid.'))
  const sent = await createChatThreadStore(options).send('Pay.')
  const runId = sent.ok ? (sent.runId ?? '') : ''
  let run: FollowedRun | undefined
  const Run = (): null => {
    run = useRun({ runId, api: API, fetch: page.fetch })
    return null
  }
  await mounted(createElement(Run), true)
  await until(() => run?.status === 'paused')
  await act(async () => {
    await run?.approve(run.pending[0]?.callId ?? '')
  })
  await until(() => run?.status === 'completed')
  expect(run?.text).toBe('Paid.')
})

test('a server renders what was loaded, and connects to nothing', async () => {
  const { page, options } = paged(new ScriptedModel().says('Hello.'))
  const chat = createChatThreadStore(options)
  await chat.send('Hi.')
  await expect.poll(async () => (await loadChatThread(options))?.snapshot.runs.at(-1)?.status).toBe('completed')
  const initial = await loadChatThread(options)
  const asked = page.asked.length
  const Chat = (props: Partial<ChatThreadOptions>): string => {
    const { runs, connection } = useChatThread({ ...options, ...props })
    const title = useStore(useChatThreadStore({ ...options, ...props }), (state) => state.title)
    return [connection, title, ...chatItems(runs).map((item) => ('text' in item ? item.text : item.kind))].join(' ')
  }
  expect(renderToString(createElement(Chat, { initial }))).toBe('closed Hi. user Hello.')
  expect(renderToString(createElement(Chat))).toBe('closed ')
  expect(page.asked).toHaveLength(asked)
})

test('the hooks are typed by their options', () => {
  expectTypeOf(useStore<ChatThreadState, number>).returns.toBeNumber()
  expectTypeOf(useChatThread).parameter(0).toEqualTypeOf<ChatThreadOptions | ChatThreadStore>()
})
