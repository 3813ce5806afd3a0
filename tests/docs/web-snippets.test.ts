import { readdirSync } from 'node:fs'
import { expect, test, vi } from 'vitest'
import { createServer } from 'node:http'
import { ScriptedModel } from 'thinharness/testing'
import { agentOf } from '../adapters/ui/ag-ui/agent.js'
import { openAiOf } from '../adapters/ui/responses/client.js'
import { served } from '../adapters/ui/support/served.js'
import { inTemporaryFolder } from '../support/folder.js'

inTemporaryFolder()
const root = new URL('../../docs/snippets/web/', import.meta.url)

const asAnn = { headers: { 'x-user': 'ann' } }

test('next.ts: a route serves the person who is signed in', async () => {
  const { GET, POST } = await import('../../docs/snippets/web/next.js')
  expect((await GET(new Request('http://shop.example/api/chat/t1/stream', asAnn))).status).toBe(204)
  expect(
    (await POST(new Request('http://shop.example/api/chat', { ...asAnn, method: 'POST', body: '{}' }))).status,
  ).toBe(400)
  expect(
    (await POST(new Request('http://shop.example/api/chat', { method: 'POST', body: '{"id":"t1"}' }))).status,
  ).toBe(404)
})

test('hono.ts and follow.ts: a message is sent, and the conversation is followed', async () => {
  vi.stubEnv('OPENAI_API_KEY', '')
  const { app } = await import('../../docs/snippets/web/hono.js')
  const { watch } = await import('../../docs/snippets/web/follow.js')
  const headers = { 'x-user': 'ann', 'content-type': 'application/json' }
  const sent = await app.request('/api/threads/t1/messages', { method: 'POST', headers, body: '{"text":"Hi."}' })
  expect(sent.status).toBe(202)
  const over = new AbortController()
  const log = vi.spyOn(console, 'log').mockImplementation((phase: unknown) => {
    if (phase === 'idle' && log.mock.calls.some(([before]) => before === 'running')) over.abort()
  })
  const send = ((address: string, init?: RequestInit) => app.request(address, init)) as typeof fetch
  const snapshot = await watch('/api', { fetch: send, headers, signal: over.signal })
  log.mockRestore()
  // There is no key: the run fails, and the page is told the sentence of its code.
  expect(snapshot?.runs[0]).toMatchObject({ status: 'failed', error: { code: 'missing_key' } })
  vi.unstubAllEnvs()
})

test('express.ts: the listener serves whom the login has put on the request', async () => {
  vi.stubEnv('OPENAI_API_KEY', '')
  const { listener } = await import('../../docs/snippets/web/express.js')
  const server = createServer((request, response) => {
    const id = request.headers['x-user']
    void listener(Object.assign(request, id === undefined ? {} : { user: { id } }), response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { readonly port: number }
  const messages = [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Hi.' }] }]
  const answerTo = async (user: Readonly<Record<string, string>>): Promise<[number, string]> => {
    const headers = { ...user, 'content-type': 'application/json' }
    const body = JSON.stringify({ id: 't1', messages })
    const response = await fetch(`http://127.0.0.1:${port}/api/chat`, { method: 'POST', headers, body })
    return [response.status, await response.text()]
  }
  expect((await answerTo({}))[0]).toBe(404)
  // There is no key: the run of Ann fails, and the page is told so.
  const [status, text] = await answerTo(asAnn.headers)
  expect(status).toBe(200)
  expect(text).toContain('missing_key')
  server.close()
  vi.unstubAllEnvs()
})

test('node.ts: one server has all handlers', async () => {
  const { server } = await import('../../docs/snippets/web/node.js')
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { readonly port: number }
  const statusOf = async (path: string): Promise<number> => (await fetch(`http://127.0.0.1:${port}/api${path}`)).status
  const paths = ['/chat/t1/stream', '/agui/capabilities', '/threads/t1/events', '/threads']
  const statuses = await Promise.all(paths.map(statusOf))
  server.close()
  expect(statuses).toEqual([204, 200, 404, 200])
})

test('responses.ts: the package `openai` asks an agent, and approves its calls', async () => {
  const { ask } = await import('../../docs/snippets/web/responses.js')
  const { responses } = served('harness', new ScriptedModel().calls('pay').calls('pay').says('Paid twice.'))
  expect(await ask('Pay twice.', openAiOf(responses))).toBe('Paid twice.')
})

test('ag-ui.ts: a message is sent, and what waits is approved', async () => {
  const { refund } = await import('../../docs/snippets/web/ag-ui.js')
  const { agent } = agentOf(served('sessions', new ScriptedModel().calls('pay').says('Refunded.')))
  expect(await refund(agent)).toBe('Refunded.')
})

test('strangers.ts: people who are not known begin runs, and approve none', async () => {
  vi.stubEnv('OPENAI_API_KEY', '')
  const { handlers } = await import('../../docs/snippets/web/strangers.js')
  const headers = { 'x-user': 'ann', 'content-type': 'application/json' }
  const post = (path: string, body: object): Request =>
    new Request(`http://app.test/api${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  expect((await handlers.requests(post('/threads/s1/messages', { text: 'Hi.' }))).status).toBe(202)
  const answers = [{ callId: 'call_1', approved: true }]
  expect((await handlers.requests(post('/threads/s1/answers', { answers }))).status).toBe(404)
  vi.unstubAllEnvs()
})

test('every snippet of docs/web.md is run', () => {
  expect(readdirSync(root).sort()).toEqual([
    'ag-ui.ts',
    'express.ts',
    'follow.ts',
    'hono.ts',
    'next.ts',
    'node.ts',
    'responses.ts',
    'strangers.ts',
    // Compiled against each version in use-chat.test.ts.
    'use-chat.ts',
    'user.ts',
  ])
})
