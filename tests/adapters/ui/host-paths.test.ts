import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Harness, memoryLog } from 'thinharness'
import type { LogStore } from 'thinharness'
import { Sessions } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { createHandlers, localOnly } from 'thinharness/ui'
import type { Handlers } from 'thinharness/ui'
import { HostPaths } from '#adapters/ui/handlers/host-paths.js'
import { tool } from '../../harness/support.js'
import { collect } from '../../support/collect.js'
import { rounds } from '../../support/length.js'
import { temporaryFolder } from '../../support/folder.js'

const BASE = 'http://localhost/api'

function post(path: string, body: object): Request {
  const headers = { 'content-type': 'application/json' }
  return new Request(`${BASE}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
}

/** An agent that reads a file, fails to read another, and gets a long result, one with a path and one that fails. */
function served(root: string, log: LogStore, model: ScriptedModel): { handlers: Handlers; sessions: Sessions } {
  const tools = [
    tool('long', () => 'word '.repeat(200), { maxOutputChars: 200 }),
    tool('where', () => ({ folder: root, text: `In\n${root}/src, "${root}" and file://${root}/a.txt` })),
    tool('fails', () => {
      throw new Error(`Nothing at ${join(root, 'secret.txt')}.`)
    }),
    tool('pay', () => 'paid', { requiresApproval: true }),
  ]
  const harness = new Harness({ model, root, tools, builtinTools: ['read'] })
  const sessions = new Sessions({ log, harness })
  onTestFinished(() => sessions.close())
  const options = { authorize: localOnly, maxStreamMs: 300, diagnostics: true, aiSdk: { envelopes: true } } as const
  return { handlers: createHandlers({ sessions, ...options }), sessions }
}

function script(root: string): ScriptedModel {
  return new ScriptedModel()
    .callsAll([
      { name: 'read', arguments: { path: 'notes/a.txt' } },
      { name: 'read', arguments: { path: join(root, 'none.txt') } },
      { name: 'long', arguments: {} },
      { name: 'where', arguments: {} },
      { name: 'fails', arguments: {} },
    ])
    .calls('pay', { from: join(root, 'bill.txt') }, { text: `It is in ${root}/notes.` })
    .says(`Paid, see ${root}/notes/a.txt.`)
}

async function bodies(handlers: Handlers, runId: string): Promise<readonly string[]> {
  const { aiSdk, agUi, events, requests, responses } = handlers
  const get = (path: string): Request => new Request(`${BASE}${path}`)
  const answers = await Promise.all([
    events(get(`/runs/${runId}/events?children=1`)),
    events(get(`/runs/${runId}/events?after=6`)),
    events(get(`/runs/${runId}/events?wait=0`)),
    events(get('/threads/t1/events')),
    events(get('/threads/t1/events?wait=0')),
    events(get(`/threads/t1/events?wait=0&after=3.${runId}.6`)),
    requests(get('/threads/t1/messages')),
    requests(get('/threads/t1/messages?format=ui')),
    requests(get('/threads/t1/messages?format=agui')),
    requests(get('/threads')),
    aiSdk(get('/chat/t1/stream?replay=1')),
    aiSdk(post('/chat', { id: 't1', messages: [{ id: 'x', role: 'assistant', parts: [] }] })),
    agUi(get('/agui/capabilities')),
    agUi(post('/agui', { threadId: 't1', runId: 'x', messages: [], tools: [], context: [] })),
    responses(get(`/responses/${runId}`)),
    responses(get(`/responses/${runId}?stream=true`)),
  ])
  return Promise.all(answers.map((answer) => answer.text()))
}

test('no event, message or document that a handler sends has a path of the host, while a run waits, at its end and later', async () => {
  const root = temporaryFolder()
  mkdirSync(join(root, 'notes'))
  writeFileSync(join(root, 'notes/a.txt'), 'Hello.')
  const log = memoryLog()
  const { handlers, sessions } = served(root, log, script(root))
  const readers = (): readonly Handlers[] => [handlers, served(root, log, new ScriptedModel()).handlers]
  const sent = await handlers.aiSdk(
    post('/chat', {
      id: 't1',
      messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: `Look at ${root}.` }] }],
    }),
  )
  const all = [await sent.text()]
  const chat = await sessions.open('t1')
  await chat.whenIdle()
  const [{ runId } = { runId: '' }] = await collect(log.list({ kind: 'run' }))
  const stored = JSON.stringify(await collect(log.read({ kind: 'run', id: runId })))
  expect(stored).toContain('saved_to')
  for (const reader of readers()) all.push(...(await bodies(reader, runId)))
  const answers = [{ callId: 'call_6', approved: true }]
  expect((await handlers.requests(post('/threads/t1/answers', { answers }))).status).toBe(202)
  await chat.whenIdle()
  for (const reader of readers()) all.push(...(await bodies(reader, runId)))
  expect(all.filter((text) => text.includes(root))).toEqual([])
  // What stands below the folder can be named.
  expect(all.join()).toContain('notes/a.txt')
})

describe('a path of the host', () => {
  const learnt = (root: string): HostPaths => {
    const paths = new HostPaths()
    paths.learn({ kind: 'run_started', root } as Parameters<HostPaths['learn']>[0])
    return paths
  }

  test('is relative to its folder, wherever it stands in JSON', () => {
    const part = fc.stringMatching(/^[\w äß"'. -]{1,12}$/).filter((name) => !/^\.|\.$|^ | $/.test(name))
    const root = fc.array(part, { minLength: 2, maxLength: 4 }).map((parts) => `/${parts.join('/')}`)
    const around = fc.constantFrom(
      ['"', '"'],
      ['\n', '\n'],
      ['(', ')'],
      ['file://', ''],
      ['=', ','],
      ['', ''],
      [': ', '.'],
    )
    const property = fc.property(
      root,
      around,
      fc.constantFrom('', '/', '/src/a.ts'),
      (folder, [before, after], rest) => {
        const nested = JSON.stringify({ text: JSON.stringify({ content: `${before}${folder}${rest}${after}` }) })
        const shown = learnt(folder).hide(nested)
        const { text } = JSON.parse(shown) as { readonly text: string }
        const { content } = JSON.parse(text) as { readonly content: string }
        expect(content).not.toContain(folder)
        if (rest === '/src/a.ts') expect(content).toContain('src/a.ts')
      },
    )
    fc.assert(property, rounds(200))
  })

  test.each([
    'https://shop.test/work/app/page',
    'data:image/png;base64,AA/work/app/x',
    '/work/app-2/x',
    '/other/work/app/x',
  ])('is nothing else: %s', (text) => {
    expect(learnt('/work/app').hide(text)).toBe(text)
  })
})
