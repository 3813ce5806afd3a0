import { expect, onTestFinished, test } from 'vitest'
import { defineExtension, memoryLog } from 'thinharness'
import type { LogStore, StreamEvent } from 'thinharness'
import { Sessions } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { createHandlers, createHub } from 'thinharness/ui'
import type { Handlers } from 'thinharness/ui'
import { masking } from '../../core/extension/masking.js'
import { harnessOf, tool } from '../../harness/support.js'
import { collect } from '../../support/collect.js'

const BASE = 'http://localhost/api'
const SECRET = 'sk-SECRET1'

const redact = (event: StreamEvent): StreamEvent =>
  JSON.parse(JSON.stringify(event).replaceAll(SECRET, '[key]')) as StreamEvent
const mask = defineExtension({ name: 'mask', redact })

function modelOf(): ScriptedModel {
  return new ScriptedModel().calls('look', { key: SECRET }, { text: `I use ${SECRET}.` }).says(`It was ${SECRET}.`)
}

type Served = { readonly log: LogStore; readonly handlers: Handlers }

/** Every way in which a host serves runs that a harness redacts. */
const WAYS: Readonly<Record<string, (log: LogStore) => Handlers>> = {
  'a harness with the extension': (log) => {
    const harness = harnessOf({ model: modelOf(), log, tools: [tool('look', () => SECRET)], use: [mask] })
    return createHandlers({ harness, log })
  },
  'a harness, and handlers with `redact`': (log) => {
    const harness = harnessOf({ model: modelOf(), log, tools: [tool('look', () => SECRET)] })
    return createHandlers({ harness, log, redact })
  },
  'a harness with a filter': (log) => {
    const harness = harnessOf({ model: modelOf(), log, tools: [tool('look', () => SECRET)], use: [masking] })
    return createHandlers({ harness, log })
  },
  'sessions with a filter': (log) => {
    const harness = harnessOf({ model: modelOf(), tools: [tool('look', () => SECRET)] })
    const sessions = new Sessions({ log, harness, use: [masking] })
    onTestFinished(() => sessions.close())
    return createHandlers({ sessions })
  },
  'sessions with the extension': (log) => {
    const sessions = new Sessions({
      log,
      harness: harnessOf({ model: modelOf(), tools: [tool('look', () => SECRET)] }),
      use: [mask],
    })
    onTestFinished(() => sessions.close())
    return createHandlers({ sessions })
  },
  'sessions over a harness with the extension, and a hub of the host': (log) => {
    const sessions = new Sessions({
      log,
      harness: harnessOf({ model: modelOf(), tools: [tool('look', () => SECRET)], use: [mask] }),
    })
    onTestFinished(() => sessions.close())
    return createHandlers({ sessions, hub: createHub({ log }) })
  },
}

function served(way: string, log = memoryLog()): Served {
  const handlers = WAYS[way]?.(log)
  if (handlers === undefined) throw new RangeError(way)
  return { log, handlers }
}

const post = (path: string, body: object): Request =>
  new Request(`${BASE}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

/** Everything that the handlers say of a conversation and its run. */
async function everything({ aiSdk, agUi, events, requests, responses }: Handlers, runId: string): Promise<string[]> {
  const get = (path: string): Request => new Request(`${BASE}${path}`)
  const agUiInput = { threadId: 't1', runId: 'x', messages: [], tools: [], context: [] }
  const answers = await Promise.all([
    events(get(`/runs/${runId}/events?children=1`)),
    events(get(`/runs/${runId}/events?wait=0`)),
    events(get('/threads/t1/events?wait=0')),
    requests(get('/threads/t1/messages')),
    requests(get('/threads/t1/messages?format=ui')),
    requests(get('/threads/t1/messages?format=agui')),
    requests(get(`/runs/${runId}/input`)),
    requests(get('/threads')),
    aiSdk(get('/chat/t1/stream?replay=1')),
    agUi(post('/agui', agUiInput)),
    responses(get(`/responses/${runId}`)),
    responses(get(`/responses/${runId}?stream=true`)),
  ])
  return Promise.all(
    answers.map(async (answer) => {
      expect(answer.status).toBe(200)
      return answer.text()
    }),
  )
}

test.each(Object.keys(WAYS))(
  'nothing that is served shows what the harness hides, live or from the log: %s',
  async (way) => {
    const { log, handlers } = served(way)
    const sent = await handlers.aiSdk(
      post('/chat', {
        id: 't1',
        messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: `Use ${SECRET}.` }] }],
      }),
    )
    const live = await sent.text()
    expect(live).toContain('[key]')
    expect(live).not.toContain(SECRET)
    const [{ runId } = { runId: '' }] = await collect(log.list({ kind: 'run' }))
    const stored = JSON.stringify(await collect(log.read({ kind: 'run', id: runId })))
    expect(stored).toContain(SECRET)
    // Once in this process, and once in another, which has seen nothing of it.
    for (const reader of [handlers, served(way, log).handlers])
      for (const text of await everything(reader, runId)) expect(text).not.toContain(SECRET)
  },
)

test.each([mask, masking])(
  'the end of a message, the events and the snapshot of a chat are redacted, also when they are loaded: $name',
  async (extension) => {
    const log = memoryLog()
    const open = () =>
      new Sessions({ log, harness: harnessOf({ model: modelOf(), tools: [tool('look')], use: [extension] }) })
    await using sessions = open()
    const chat = await sessions.open('t1')
    const { text, result } = await (await chat.send(`Use ${SECRET}.`)).done
    expect([text, result?.text, result?.status === 'completed' && result.output]).toEqual(
      Array(3).fill('It was [key].'),
    )
    await sessions.close()
    await using others = open()
    const other = await others.open('t1')
    const seen = [
      await collect(other.events({ live: false })),
      other.snapshot.runs[0]?.entries,
      other.snapshot.runs[0]?.calls,
    ]
    expect(JSON.stringify(seen)).not.toContain(SECRET)
    expect(JSON.stringify(seen)).toContain('[key]')
  },
)

test('`redact` is refused over sessions, which have extensions', () => {
  const sessions = new Sessions({ harness: harnessOf({ model: modelOf() }) })
  expect(() => createHandlers({ sessions, redact })).toThrow('give `use` to the sessions')
})
