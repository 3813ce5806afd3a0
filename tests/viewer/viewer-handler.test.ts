import { describe, expect, test } from 'vitest'
import { memoryLog } from 'thinharness'
import type { Harness, LogStore } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { createHub } from 'thinharness/ui'
import { followRun } from 'thinharness/ui/client'
import { viewerHandler } from 'thinharness/viewer'
import { Book } from '#viewer/reading/book.js'
import { gate, harnessOf, tool } from '../harness/support.js'
import type { Gate } from '../harness/support.js'
import { collect } from '../support/collect.js'
import { bookOf, dataOf, TEMPLATE } from './support.js'

const PLACE = 'http://127.0.0.1:4000/secret/'

interface Waiting {
  readonly log: LogStore
  readonly harness: Harness
  /** Lets the call end. */
  readonly held: Gate
}

/** A run whose second turn waits until it is let go on. */
function waiting(): Waiting {
  const held = gate()
  const log = memoryLog()
  const model = new ScriptedModel().calls('wait', { n: 1 }).says('All is done.')
  const tools = [tool('wait', () => held.opened.then(() => 'waited'))]
  return { log, harness: harnessOf({ log, model, tools }), held }
}

async function pageOf(show: (request: Request) => Promise<Response>): Promise<Book> {
  const answer = await show(new Request(PLACE))
  const { header, logs } = await dataOf(await answer.text())
  return new Book(header, logs)
}

describe('a live page', () => {
  test('VW-23 goes on from what it has, catches up after lost connections without a gap, and is the saved page in the end', async () => {
    const { log, harness, held } = waiting()
    const hub = createHub({ log })
    await hub.start(harness.stream('Go.', { runId: 'run_1', deltas: true }))
    const show = viewerHandler(log, { runId: 'run_1', hub, page: TEMPLATE })
    const book = await pageOf(show)
    expect(book.header.live).toEqual({ url: './', approvals: false })
    expect(book.run('run_1')?.state).toBe('running')
    let requests = 0
    // The first connections are lost after their first events, in the middle of a frame.
    const lossy: typeof fetch = async (input, init) => {
      requests += 1
      const answer = await show(new Request(input, init))
      if (requests > 2 || answer.body === null) return answer
      const reader = answer.body.getReader()
      let text = ''
      for (let piece = 0; piece < 2; piece++)
        text += new TextDecoder().decode((await reader.read()).value as Uint8Array)
      await reader.cancel()
      return new Response(text.slice(0, -10), { status: answer.status })
    }
    held.open()
    const url = `${PLACE}runs/run_1/events?children=1`
    const kinds: string[] = []
    for await (const { cursor: _cursor, ...event } of followRun(url, { after: book.cursorOf('run_1'), fetch: lossy }))
      if (book.append(event as never)) kinds.push(event.kind)
    const saved = await bookOf(log, { runId: 'run_1' })
    expect(book.bytesOf('run_1')).toEqual(saved.bytesOf('run_1'))
    expect(book.run('run_1')).toMatchObject({ state: 'completed', open: null, lastSeq: saved.run('run_1')?.lastSeq })
    expect(kinds.at(-1)).toBe('run_completed')
    expect(requests).toBeGreaterThan(1)
  }, 30_000)

  test('is answered with 204 by a run that has nothing more, and with 404 by one that is not there', async () => {
    const { log, harness, held } = waiting()
    held.open()
    await harness.run('Go.', { runId: 'run_1' })
    const show = viewerHandler(log, { runId: 'run_1', page: TEMPLATE })
    const after = (await pageOf(show)).cursorOf('run_1')
    const status = async (path: string): Promise<number> => (await show(new Request(`${PLACE}${path}`))).status
    expect(await status(`runs/run_1/events?after=${after}`)).toBe(204)
    expect(await status('runs/run_9/events')).toBe(404)
    expect(await status('runs/run_1/events?after=what')).toBe(400)
    expect(await status('runs/run_1/secrets')).toBe(404)
    const none = viewerHandler(log, { runId: 'run_9', page: TEMPLATE })
    expect((await none(new Request(PLACE))).status).toBe(404)
  })

  test('VW-23 takes answers if its host says so, and follows the run on', async () => {
    const log = memoryLog()
    const model = new ScriptedModel().calls('pay', { amount: 5 }).says('Paid.')
    const harness = harnessOf({ log, model, tools: [tool('pay', () => 'paid', { requiresApproval: true })] })
    await harness.run('Pay.', { runId: 'run_1' })
    const body = JSON.stringify({ answers: [{ callId: 'call_1', approved: true, by: 'Ada' }] })
    const post = (text: string): Request =>
      new Request(`${PLACE}runs/run_1/answers`, {
        ...{ method: 'POST', body: text, headers: { 'content-type': 'application/json' } },
      })
    const closed = viewerHandler(log, { runId: 'run_1', page: TEMPLATE })
    expect((await closed(post(body))).status).toBe(404)
    const open = viewerHandler(log, {
      ...{ runId: 'run_1', page: TEMPLATE },
      answers: (runId, answers) => harness.streamResumeRun(runId, answers, { log }),
    })
    const book = await pageOf(open)
    expect(book.header.live).toEqual({ url: './', approvals: true })
    expect((await open(post('{"answers": 7}'))).status).toBe(400)
    expect((await open(post('{"answers": [{"callId": "call_9", "approved": true}]}'))).status).toBe(400)
    expect((await open(post(body))).status).toBe(202)
    const send = ((input: string, init: RequestInit) => open(new Request(input, init))) as typeof fetch
    const url = `${PLACE}runs/run_1/events?children=1`
    for await (const { cursor: _cursor, ...event } of followRun(url, { after: book.cursorOf('run_1'), fetch: send }))
      book.append(event as never)
    expect(book.run('run_1')).toMatchObject({ state: 'completed', turns: [{}, { text: 'Paid.' }] })
  })

  test('VW-24 serves this machine alone unless its host says who may look, and redacts what comes too', async () => {
    const { log, harness, held } = waiting()
    held.open()
    await harness.run('Go.', { runId: 'run_1' })
    const show = viewerHandler(log, {
      ...{ runId: 'run_1', page: TEMPLATE },
      redact: (event) => (event.kind === 'run_started' ? { ...event, prompt: '[removed]' } : event),
    })
    expect((await show(new Request('http://agents.example/'))).status).toBe(403)
    const foreign = new Request(PLACE, { headers: { origin: 'https://evil.example' } })
    expect((await show(foreign)).status).toBe(403)
    const events = await (await show(new Request(`${PLACE}runs/run_1/events`))).text()
    expect(events).toContain('"prompt":"[removed]"')
    expect(events).not.toContain('"prompt":"Go."')
    const asked = viewerHandler(log, { runId: 'run_1', page: TEMPLATE, authorize: () => null })
    expect((await asked(new Request(PLACE))).status).toBe(404)
    const mounted = await (await show(new Request('http://127.0.0.1/admin/viewer'))).text()
    expect((await dataOf(mounted)).header.live?.url).toBe('./viewer/')
    expect(mounted).toContain("connect-src 'self'")
  })

  test('shows no other run than those of its page, and to each person their own', async () => {
    const log = memoryLog()
    const harness = harnessOf({ log, model: new ScriptedModel().says('A.').says('B.').says('C.') })
    await harness.run('Mine.', { runId: 'run_1', metadata: { resourceId: 'ada' } })
    await harness.run('Theirs.', { runId: 'run_2', metadata: { resourceId: 'ben' } })
    await harness.run("Nobody's.", { runId: 'run_3' })
    const statusOf = async (show: (request: Request) => Promise<Response>, runId: string): Promise<number> =>
      (await show(new Request(`${PLACE}runs/${runId}/events`))).status
    const authorize = () => ({ resourceId: 'ada' })
    const one = viewerHandler(log, { runId: 'run_1', page: TEMPLATE, authorize })
    const own = viewerHandler(log, { page: TEMPLATE, authorize })
    const all = viewerHandler(log, { page: TEMPLATE })
    const shown = async (show: (request: Request) => Promise<Response>): Promise<readonly string[]> =>
      [...(await pageOf(show)).runIds].sort()
    expect(await shown(one)).toEqual(['run_1'])
    expect(await shown(own)).toEqual(['run_1'])
    expect(await shown(all)).toEqual(['run_1', 'run_2', 'run_3'])
    const ids = ['run_1', 'run_2', 'run_3', 'run_4']
    expect(await Promise.all(ids.map((id) => statusOf(one, id)))).toEqual([200, 404, 404, 404])
    expect(await Promise.all(ids.map((id) => statusOf(own, id)))).toEqual([200, 404, 404, 404])
    expect(await Promise.all(ids.map((id) => statusOf(all, id)))).toEqual([200, 200, 200, 404])
  })

  test('an answer is signed by who the host says it is', async () => {
    const log = memoryLog()
    const model = new ScriptedModel().calls('pay', { amount: 5 }).says('Paid.')
    const harness = harnessOf({ log, model, tools: [tool('pay', () => 'paid', { requiresApproval: true })] })
    await harness.run('Pay.', { runId: 'run_1' })
    const show = viewerHandler(log, {
      ...{ runId: 'run_1', page: TEMPLATE, authorize: () => ({ resourceId: 'ada', by: 'Ada' }) },
      answers: (runId, answers) => harness.streamResumeRun(runId, answers, { log }),
    })
    const body = JSON.stringify({ answers: [{ callId: 'call_1', approved: true, by: 'Eve' }] })
    const init = { method: 'POST', body, headers: { 'content-type': 'application/json' } }
    expect((await show(new Request(`${PLACE}runs/run_1/answers`, init))).status).toBe(202)
    const remembered = body.replace('"by":"Eve"', '"remember":"tool"')
    expect((await show(new Request(`${PLACE}runs/run_1/answers`, { ...init, body: remembered }))).status).toBe(400)
    const events = await collect(log.read({ kind: 'run', id: 'run_1' }))
    expect(JSON.stringify(events.find(({ kind }) => kind === 'answer_received'))).toContain('"by":"Ada"')
  })
})
