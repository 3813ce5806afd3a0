import { createElement } from 'react'
import { renderToString } from 'react-dom/server'
import { expect, test, vi } from 'vitest'
import { ScriptedModel } from 'thinharness/testing'
import { localOnly } from 'thinharness/ui'
import { createChatThreadStore, loadChatThread } from 'thinharness/ui/react'
import { served } from '../adapters/ui/support/served.js'
import { API, Page } from '../adapters/ui/react/support.js'
import { Chat } from '../../docs/snippets/react/chat.js'
import { Page as Parts } from '../../docs/snippets/react/parts.js'
import { Report } from '../../docs/snippets/react/run.js'
import { loadChat } from '../../docs/snippets/react/server.js'
import { talk } from '../../docs/snippets/react/store.js'

test('chat.tsx, parts.tsx and run.tsx render on a server without a connection', () => {
  const send = vi.fn()
  vi.stubGlobal('fetch', send)
  expect(renderToString(createElement(Chat, { threadId: 't1' }))).toContain('Send</button>')
  expect(renderToString(createElement(Parts, { threadId: 't1' }))).toBe('<h1></h1><ul></ul>')
  expect(renderToString(createElement(Report, { runId: 'r1' }))).toBe(
    '<article aria-busy="false"><pre></pre></article>',
  )
  expect(send).not.toHaveBeenCalled()
  vi.unstubAllGlobals()
})

test('store.ts: a message is sent and its answer is read', async () => {
  const page = new Page(served('sessions', new ScriptedModel().says('On its way.'), { authorize: localOnly }))
  expect(await talk(API, page.fetch)).toBe('On its way.')
  const loaded = await loadChatThread({ threadId: 't1', api: API, fetch: page.fetch })
  expect(createChatThreadStore({ threadId: 't1', initial: loaded }).getSnapshot().title).toBe('Where is my order?')
})

test('server.ts: there is nothing to load of a conversation that nobody has begun', async () => {
  expect(await loadChat('ann', 't1')).toBeNull()
})
