import { describe, expect, test } from 'vitest'
import { defineTool, memoryLog } from 'thinharness'
import type { LogStore, ToolSpec } from 'thinharness'
import { Sessions, submitPlan } from 'thinharness/session'
import type { Chat, MessageEnd, Modes, Sent } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { createHandlers } from 'thinharness/ui'
import { harnessOf, tool } from '../harness/support.js'
import { codeOf, gate, processLog, said, sessionsOf, warnings } from './support.js'

/** The code of an error, of whichever class. */
async function refusalOf(promise: Promise<unknown>): Promise<string> {
  const error: unknown = await promise.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  if (error === null) return 'resolved'
  return error instanceof Error && 'code' in error ? String(error.code) : JSON.stringify(error)
}

/** The end of a message, or `open` if it is not there when everything that can go on has. */
async function endOf(chat: Chat, { done }: Sent): Promise<MessageEnd | 'open'> {
  await chat.whenIdle().catch(() => undefined)
  return Promise.race([done, new Promise<'open'>((resolve) => setTimeout(resolve, 50, 'open'))])
}

function errorCode(end: MessageEnd | 'open'): string | undefined {
  return end === 'open' ? end : (end.error as { code?: string } | undefined)?.code
}

const toolOf = (name: string, parameters: object, options: object = {}): ToolSpec =>
  defineTool({ name, description: `Does ${name}.`, parameters, handler: () => `${name} done`, ...options } as never)

const STRICT = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] }

/** A conversation whose process died in a call of `work`. */
async function killedInTool(log: LogStore): Promise<void> {
  const started = gate()
  const handler = (): Promise<never> => {
    started.open()
    return new Promise(() => undefined)
  }
  const work = toolOf('work', { type: 'object' }, { handler, annotations: { idempotent: true } })
  const dying = processLog(log)
  const model = new ScriptedModel().calls('work')
  const chat = await new Sessions({ log: dying.log, harness: harnessOf({ model, tools: [work] }) }).open('t1')
  await chat.send('Work.')
  await started.opened
  await dying.kill()
}

interface Deploy {
  readonly sessions: Sessions
  readonly code: string
}

const DEPLOYS: readonly (readonly [string, (log: LogStore, model: ScriptedModel) => Deploy])[] = [
  [
    'without the tool',
    (log, model) => ({ sessions: sessionsOf({ log, harness: harnessOf({ model }) }), code: 'invalid_state' }),
  ],
  [
    'whose `deps` throw',
    (log, model) => {
      const deps = (): never => {
        throw new TypeError('No database.')
      }
      const tools = [toolOf('work', { type: 'object' }, { annotations: { idempotent: true } })]
      return { sessions: sessionsOf({ log, harness: harnessOf({ model, tools, deps }) }), code: 'error' }
    },
  ],
  [
    'whose harness cannot read the log of the run',
    (log, model) => {
      const harness = harnessOf({ model, tools: [toolOf('work', { type: 'object' })] })
      const unreadable = new Proxy(log, {
        get(target, name) {
          if (name === 'read') throw new TypeError('The disk is away.')
          const member: unknown = Reflect.get(target, name)
          return typeof member === 'function' ? (member.bind(target) as unknown) : member
        },
      })
      const mode = new Proxy(harness, {
        get(target, name) {
          if (name === 'streamRecover') return (runId: string) => target.streamRecover(runId, { log: unreadable })
          const member: unknown = Reflect.get(target, name)
          return typeof member === 'function' ? (member.bind(target) as unknown) : member
        },
      })
      return { sessions: sessionsOf({ log, harness: mode }), code: 'store_failure' }
    },
  ],
]

describe.each(DEPLOYS)('an interrupted run after a deploy %s', (_name, deploy) => {
  test('`recover` rejects with the reason, and so does `whenIdle`; the list names it', async () => {
    const log = memoryLog()
    await killedInTool(log)
    const { sessions, code } = deploy(log, new ScriptedModel().always('On.'))
    const chat = await sessions.open('t1')
    expect(chat.phase).toBe('interrupted')
    expect(await refusalOf(chat.recover())).toBe(code)
    expect(await refusalOf(chat.whenIdle())).toBe(code)
    expect(chat.snapshot.thread.refused).toMatchObject({ code })
    for await (const item of sessions.list()) expect(item).toMatchObject({ phase: 'interrupted', error: { code } })
  })

  test('a message is told why, and kept; after a cancel the conversation goes on with the next one', async () => {
    const log = memoryLog()
    await killedInTool(log)
    const { sessions, code } = deploy(log, new ScriptedModel().always('On.'))
    const chat = await sessions.open('t1')
    const sent = await chat.send('Go on.', { messageId: 'm2' })
    expect(sent.status).toBe('queued')
    const end = await endOf(chat, sent)
    expect([end, errorCode(end)]).toMatchObject([{ status: 'failed', runId: null }, code])
    expect(chat.queue.list()).toMatchObject([{ messageId: 'm2', error: { code } }])
    await chat.cancel()
    const next = await endOf(chat, await chat.send('Next.'))
    if (code !== 'error') expect(next).toMatchObject({ status: 'completed', text: 'On.' })
    else expect(next).toMatchObject({ status: 'failed' })
    // Its sender was told that it failed: it does not run by itself.
    expect(said(chat)).not.toContain('user: Go on.')
    expect(chat.queue.list().map(({ messageId }) => messageId)).toContain('m2')
    expect([chat.phase, chat.queue.held]).toEqual(['idle', true])
  })
})

test('a message that failed to begin runs when the queue is released, once', async () => {
  let isBroken = true
  const resolveModel = (): ScriptedModel => {
    if (isBroken) throw new TypeError('No such model.')
    return model
  }
  const model = new ScriptedModel().always('On.')
  const chat = await sessionsOf({ harness: harnessOf({ model }), resolveModel }).open()
  isBroken = false
  await chat.setModel('any:one')
  isBroken = true
  const first = await endOf(chat, await chat.send('1'))
  expect([first, errorCode(first)]).toMatchObject([{ status: 'failed', runId: null }, 'unknown_model'])
  const [second, third] = await Promise.all([chat.send('2'), chat.send('3')])
  const ends = [await endOf(chat, second), await endOf(chat, third)]
  expect(ends.map(errorCode)).toEqual(['unknown_model', 'unknown_model'])
  isBroken = false
  expect(await endOf(chat, await chat.send('4'))).toMatchObject({ status: 'completed' })
  const failed = ends.filter((end) => end !== 'open' && end.status === 'failed').length + 1
  expect(chat.queue.list().filter(({ error }) => error !== undefined)).toHaveLength(failed)
  await chat.queue.release()
  await chat.whenIdle()
  expect([chat.queue.list(), chat.queue.held]).toEqual([[], false])
  expect(
    said(chat)
      .filter((line) => line.startsWith('user'))
      .sort(),
  ).toEqual(['user: 1', 'user: 2', 'user: 3', 'user: 4'])
})

test('nobody waits for a run that cannot go on: the process is warned', async () => {
  const log = memoryLog()
  const seen = warnings()
  const modes = {
    plan: harnessOf({
      model: new ScriptedModel().calls('submit_plan', { plan: '1.' }),
      use: [submitPlan({ then: 'build' })],
    }),
    build: harnessOf({
      model: new ScriptedModel(),
      deps: () => {
        throw new TypeError('No database.')
      },
    }),
  }
  const chat = await sessionsOf({ log, modes }).open('t1')
  await (
    await chat.send('Go.')
  ).done
  await chat.answer([{ callId: chat.pending[0]?.callId ?? '', answer: { action: 'approved' } }])
  await chat.whenIdle().catch(() => undefined)
  expect(chat.phase).toBe('interrupted')
  await new Promise((resolve) => setImmediate(resolve))
  expect(seen).toEqual([expect.stringContaining('No database.')])
})

describe('an approval that waits across a deploy', () => {
  const pay = (options: object = {}): ToolSpec => toolOf('pay', STRICT, { requiresApproval: true, ...options })

  async function waiting(log: LogStore): Promise<string> {
    const model = new ScriptedModel().calls('pay', { n: 1 })
    const sessions = sessionsOf({ log, harness: harnessOf({ model, tools: [pay()] }) })
    const chat = await sessions.open('t1')
    await (
      await chat.send('Pay.')
    ).done
    const callId = chat.pending[0]?.callId ?? ''
    await sessions.close()
    return callId
  }

  test('an answer that cannot be used rejects with the reason, the item stays, and messages behind it are told', async () => {
    const log = memoryLog()
    const callId = await waiting(log)
    const chat = await sessionsOf({ log, harness: harnessOf({ model: new ScriptedModel().always('On.') }) }).open('t1')
    const behind = await chat.send('And then?')
    expect(behind.status).toBe('queued')
    expect(await refusalOf(chat.answer([{ callId, approved: true }]))).toBe('invalid_state')
    expect([chat.phase, chat.pending.map((item) => item.callId)]).toEqual(['waiting', [callId]])
    const end = await endOf(chat, behind)
    expect([end, errorCode(end)]).toMatchObject([{ status: 'queued' }, 'invalid_state'])
    expect(chat.snapshot.thread.refused?.code).toBe('invalid_state')
    await chat.cancel()
    expect(await endOf(chat, await chat.send('Next.'))).toMatchObject({ status: 'completed' })
    expect(said(chat).filter((line) => line.startsWith('user'))).toEqual([
      'user: Pay.',
      'user: And then?',
      'user: Next.',
    ])
  })

  test('only an answer for which nothing waits is stale', async () => {
    const log = memoryLog()
    const callId = await waiting(log)
    const model = new ScriptedModel().always('On.')
    const chat = await sessionsOf({ log, harness: harnessOf({ model, tools: [pay()] }) }).open('t1')
    expect(await chat.answer([{ callId, approved: true }])).toEqual([{ callId, status: 'accepted' }])
    await chat.whenIdle()
    expect(await chat.answer([{ callId, approved: true }])).toEqual([{ callId, status: 'stale' }])
  })

  test('a message that declines what cannot be continued is refused, and not stored', async () => {
    const log = memoryLog()
    await waiting(log)
    const chat = await sessionsOf({ log, harness: harnessOf({ model: new ScriptedModel().always('On.') }) }).open('t1')
    expect(await refusalOf(chat.send('No.', { messageId: 'm2', whenBusy: 'decline' }))).toBe('invalid_state')
    expect([chat.phase, chat.snapshot.thread.steering, chat.queue.list()]).toEqual(['waiting', [], []])
  })

  test('the answer of another process is refused by its owner with the same reason', async () => {
    const log = memoryLog()
    const callId = await waiting(log)
    const harness = harnessOf({ model: new ScriptedModel().always('On.') })
    const owner = await sessionsOf({ log, harness }).open('t1')
    await owner.rename('Mine')
    const other = await sessionsOf({ log, harness }).open('t1')
    const behind = await other.send('And then?')
    expect(await refusalOf(other.answer([{ callId, approved: true }]))).toBe('invalid_state')
    expect(await behind.done).toMatchObject({ status: 'queued', error: { code: 'invalid_state' } })
  })

  test.each(['the sessions', 'the harness'])('`configPolicy` of %s lets it go on', async (place) => {
    const log = memoryLog()
    const callId = await waiting(log)
    const options = { configPolicy: 'any' } as const
    const model = new ScriptedModel().always('On.')
    const harness = harnessOf({ model, ...(place === 'the harness' && options) })
    const chat = await sessionsOf({ log, harness, ...(place === 'the sessions' && options) }).open('t1')
    expect(await chat.answer([{ callId, approved: true }])).toEqual([{ callId, status: 'accepted' }])
    await chat.whenIdle()
    expect(chat.snapshot.runs.at(-1)?.status).toBe('completed')
  })
})

describe('a mode that a deploy has removed', () => {
  async function waiting(log: LogStore): Promise<string> {
    const look = tool('look', () => 'seen', { requiresApproval: true })
    const modes = {
      edit: harnessOf({ model: new ScriptedModel() }),
      review: harnessOf({ model: new ScriptedModel().calls('look'), tools: [look] }),
    }
    const sessions = sessionsOf({ log, modes })
    const chat = await sessions.open('t1')
    await chat.setMode('review')
    await (
      await chat.send('Look.')
    ).done
    const callId = chat.pending[0]?.callId ?? ''
    await sessions.close()
    return callId
  }

  function later(log: LogStore): { readonly sessions: Sessions; readonly erased: () => boolean } {
    let isErased = false
    const erase = tool('erase', () => {
      isErased = true
      return 'erased'
    })
    const model = new ScriptedModel().calls('erase').always('On.')
    const edit = harnessOf({ model, tools: [tool('look', () => 'seen', { requiresApproval: true }), erase] })
    return { sessions: sessionsOf<Modes>({ log, modes: { edit } }), erased: () => isErased }
  }

  test('its run is not continued under another mode; an answer rejects with `unknown_mode`', async () => {
    const log = memoryLog()
    const callId = await waiting(log)
    const { sessions, erased } = later(log)
    const chat = await sessions.open('t1')
    expect(await codeOf(chat.answer([{ callId, approved: true }]))).toBe('unknown_mode')
    expect([chat.phase, chat.pending.length, erased()]).toEqual(['waiting', 1, false])
    await chat.cancel()
    expect(chat.phase).toBe('idle')
  })

  test('a later message runs under the default mode: that is told once, and stored', async () => {
    const seen = warnings()
    const log = memoryLog()
    await waiting(log)
    const chat = await later(log).sessions.open('t1')
    await chat.cancel()
    await (
      await chat.send('Go.')
    ).done
    await (
      await chat.send('On.')
    ).done
    expect(chat.snapshot.runs.map(({ mode }) => mode)).toEqual(['review', 'edit', 'edit'])
    expect(chat.snapshot.thread.mode).toBe('edit')
    await new Promise((resolve) => setImmediate(resolve))
    expect(seen).toEqual([expect.stringMatching(/`review`.*`edit`/)])
  })

  test('a message that asks for it by name is refused, and kept', async () => {
    const log = memoryLog()
    const started = gate()
    const model = new ScriptedModel().calls('wait').always('On.')
    const wait = tool('wait', () => started.opened.then(() => 'over'))
    const modes = { edit: harnessOf({ model, tools: [wait] }), review: harnessOf({ model: new ScriptedModel() }) }
    const first = sessionsOf({ log, modes })
    const before = await first.open('t1')
    await before.send('Wait.')
    expect((await before.send('Look.', { mode: 'review', messageId: 'm2' })).status).toBe('queued')
    const closing = first.close()
    started.open()
    await closing
    const edit = harnessOf({ model, tools: [wait] })
    const chat = await sessionsOf<Modes>({ log, modes: { edit } }).open('t1')
    await chat.cancel()
    await chat.queue.release()
    await chat.whenIdle()
    expect(said(chat)).not.toContain('user: Look.')
    expect(chat.queue.list()).toMatchObject([{ messageId: 'm2', error: { code: 'unknown_mode' } }])
    expect(await codeOf(chat.send('3', { mode: 'constructor' as never }))).toBe('unknown_mode')
  })
})

test('a page is told by a code that no run could read its message', async () => {
  const deps = (): never => {
    throw new TypeError('No database.')
  }
  const sessions = sessionsOf({ harness: harnessOf({ model: new ScriptedModel().always('On.'), deps }) })
  await sessions.for({ resourceId: 'ann' }).open('t1')
  const { requests } = createHandlers({ sessions, authorize: () => ({ resourceId: 'ann' }) })
  const body = JSON.stringify({ messageId: 'm1', text: 'Hi.' })
  const headers = { 'content-type': 'application/json' }
  const request = new Request('http://localhost/threads/t1/messages', { method: 'POST', headers, body })
  const response = await requests(request)
  expect([response.status, await response.json()]).toMatchObject([500, { code: 'error' }])
})
