import { DBOS } from '@dbos-inc/dbos-sdk'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { DurableEvent, HarnessOptions } from 'thinharness'
import { dbosRuns } from 'thinharness/durable/dbos'
import type { DbosRuns } from 'thinharness/durable/dbos'
import { postgresLog } from 'thinharness/store/postgres'
import { ScriptedModel } from 'thinharness/testing'
import { ask, playing } from '../../run/children/children-support.js'
import { failureOf, gate, harnessOf, kinds, tool } from '../../harness/support.js'
import { engineDatabase } from './support.js'
import { collect } from '../../support/collect.js'

const database = await engineDatabase()

const PLAYS = {
  plain: [['safe'], 'Done.'],
  approve: [['send', 'send', 'safe'], 'Sent.'],
  ask: [['ask'], 'Thank you.'],
  hang: [['hang'], 'Never.'],
  wait: [['wait'], 'Waited.'],
  nested: [['start'], 'Started.'],
}
const sent: string[] = []
const waiting = { now: 0, most: 0, opened: gate() }
let began = gate<string>()

async function waits(): Promise<string> {
  waiting.now += 1
  waiting.most = Math.max(waiting.most, waiting.now)
  await waiting.opened.opened
  waiting.now -= 1
  return 'ok'
}

const options: HarnessOptions = {
  model: playing(PLAYS),
  tools: [
    tool('safe', () => 'ok', { annotations: { readOnly: true } }),
    tool('send', (_, { callId }) => sent.push(callId), { requiresApproval: true }),
    ask,
    tool('hang', (_, { runId, signal }) => {
      began.open(runId)
      return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))))
    }),
    tool('wait', waits),
    tool('start', async () => {
      await runs.start('plain', { runId: 'run_nested' })
      return 'ok'
    }),
  ],
}

let runs: DbosRuns
let few: DbosRuns
let typed: DbosRuns<{ n: number }>

async function eventsAfter(runId: string, after = 0): Promise<DurableEvent[]> {
  const events = await collect(runs.events(runId, { after }))
  return events
}

describe.skipIf(database === null)('runs on DBOS', () => {
  const log = postgresLog({ connectionString: database?.url ?? 'postgres://none' })

  beforeAll(async () => {
    const shared = { dbos: DBOS, log, takeOverEveryMs: false } as const
    const queue = { pollMs: 50 }
    runs = await dbosRuns({ ...shared, queue, harness: harnessOf(options) })
    few = await dbosRuns({ ...shared, name: 'few', harness: harnessOf(options), queue: { ...queue, concurrency: 2 } })
    const model = new ScriptedModel().always({ calls: [{ name: 'final_result', arguments: { n: 7 } }] })
    typed = await dbosRuns({
      ...shared,
      name: 'typed',
      queue,
      harness: () => harnessOf({ model, outputType: z.object({ n: z.number() }) }),
    })
    const config = { name: 'host', systemDatabaseUrl: database!.url, applicationVersion: 'host-1', logLevel: 'error' }
    DBOS.setConfig(config)
    await DBOS.launch()
  }, 60_000)

  afterAll(async () => {
    await DBOS.shutdown()
    await log.close()
    await database!.drop()
  }, 60_000)

  test('DU-14 they return the whole result, in any process that asks for it', async () => {
    const run = await runs.start('plain', { metadata: { user: 'u1' } })
    const result = await run.result()
    expect(result).toMatchObject({ runId: run.runId, text: 'Done.', stopReason: 'end_turn', pending: [] })
    expect(result.toolCallRecords.map(({ call }) => call.name)).toEqual(['safe'])
    expect((await log.inspect({ kind: 'run', id: run.runId }))?.metadata).toEqual({ user: 'u1' })
    expect(await (await runs.get(run.runId)).result()).toEqual(result)
  })

  test('DU-15 they return a typed output', async () => {
    const { output } = await (await typed.start('Seven.')).result()
    expect(output).toEqual({ n: 7 })
  })

  test('DU-16 they wait for approvals without a place in the queue, and accept them in parts', async () => {
    sent.length = 0
    const run = await few.start('approve')
    const paused = await run.result()
    expect(paused).toMatchObject({ stopReason: 'approval_required' })
    const [one, other] = await few.pending(run.runId)
    expect(await DBOS.listWorkflows({ workflowName: 'few', status: ['PENDING', 'ENQUEUED'] })).toEqual([])

    const still = await (await few.answer(run.runId, [{ callId: one!.callId, approved: true }])).result()
    expect(still.pending.map(({ callId }) => callId)).toEqual([other!.callId])
    expect(sent).toEqual([])
    const rejected = [{ callId: other!.callId, approved: false, reason: 'no' }]
    const ended = await (await few.answer(run.runId, rejected)).result()
    expect(ended).toMatchObject({ text: 'Sent.', stopReason: 'end_turn' })
    expect(sent).toEqual([one!.callId])
    // Who asked for the first stretch still gets how it ended.
    expect((await run.result()).pending).toHaveLength(2)
    expect(await few.pending(run.runId)).toEqual([])
  })

  test('DU-17 they reject invalid answers, at once or by their result, and keep waiting', async () => {
    const run = await runs.start('ask')
    const { pending } = await run.result()
    const { callId } = pending[0]!
    await expect(runs.answer(run.runId, [{ callId: 'call_9', answer: 'x' }])).rejects.toMatchObject({
      code: 'invalid_answer',
      message: `Nothing waits for an answer to \`call_9\`. Waiting: \`${callId}\`.`,
    })
    const bad = await runs.answer(run.runId, [{ callId, answer: 7 }])
    expect(await failureOf(bad.result())).toMatchObject({ code: 'invalid_answer' })
    expect(await runs.pending(run.runId)).toEqual(pending)
    const good = await runs.answer(run.runId, [{ callId, answer: 'This one.' }])
    expect(await good.result()).toMatchObject({ text: 'Thank you.', stopReason: 'end_turn' })
    await expect(runs.answer(run.runId, [{ callId, answer: 'That one.' }])).rejects.toMatchObject({
      code: 'invalid_state',
      message: `Run \`${run.runId}\` does not wait for answers: it is completed.`,
    })
  })

  test('DU-18 they accept one of two concurrent answers', async () => {
    const run = await runs.start('ask')
    const { callId } = (await run.result()).pending[0]!
    const both = await Promise.allSettled(['a', 'b'].map((answer) => runs.answer(run.runId, [{ callId, answer }])))
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    expect(both.find((each) => each.status === 'rejected')?.reason).toMatchObject({ code: 'invalid_state' })
    expect(await (await runs.get(run.runId)).result()).toMatchObject({ text: 'Thank you.' })
  })

  test('DU-19 they start once under one id', async () => {
    await (await runs.start('plain', { runId: 'run_one' })).result()
    const again = { code: 'run_exists', message: 'Run `run_one` exists already.' }
    await expect(runs.start('plain', { runId: 'run_one' })).rejects.toMatchObject(again)
    const racing = await Promise.allSettled([1, 2, 3].map(() => runs.start('plain', { runId: 'run_two' })))
    expect(racing.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  })

  test('DU-20 they can be cancelled from any process', async () => {
    began = gate()
    const run = await runs.start('hang')
    await began.opened
    expect(await runs.cancel(run.runId)).toBe(true)
    const error = await failureOf(run.result())
    expect(error).toMatchObject({ code: 'cancelled', name: 'AbortError', run: { stopReason: 'cancelled' } })
    expect(error.run.toolCallRecords).toHaveLength(1)
    expect((await log.inspect({ kind: 'run', id: run.runId }))?.status).toBe('cancelled')
    expect(await runs.cancel(run.runId)).toBe(false)
  })

  test('DU-21 they are limited by the queue of the engine, and queued ones can be cancelled', async () => {
    waiting.most = 0
    waiting.opened = gate()
    const started = []
    for (let index = 0; index < 5; index++) started.push(await few.start('wait'))
    while (waiting.now < 2) await new Promise((resolve) => setTimeout(resolve, 20))
    const last = started.pop()!
    expect(await few.pending(last.runId)).toEqual([])
    expect(await few.cancel(last.runId)).toBe(true)
    expect(await failureOf(last.result())).toMatchObject({
      code: 'cancelled',
      message: `Run \`${last.runId}\` was cancelled before it began.`,
    })
    waiting.opened.open()
    const results = await Promise.all(started.map((run) => run.result()))
    expect(results.map(({ text }) => text)).toEqual(Array(4).fill('Waited.'))
    expect(waiting.most).toBe(2)
  })

  test('DU-22 they emit their events to every reader while they run', async () => {
    const run = await runs.start('ask')
    const first = await eventsAfter(run.runId)
    expect(kinds(first)).toMatch(/^run_started .* run_completed$/)
    const { callId } = (await run.result()).pending[0]!
    const following = eventsAfter(run.runId, first.length)
    await runs.answer(run.runId, [{ callId, answer: 'This one.' }])
    const rest = await following
    expect([...first, ...rest].map(({ seq }) => seq)).toEqual([...first, ...rest].map((_, index) => index + 1))
    expect(rest.at(-1)).toMatchObject({ kind: 'run_completed', stopReason: 'end_turn' })
    expect(await eventsAfter('run_unknown')).toEqual([])
  })

  test('DU-23 they can start others from their tools', async () => {
    expect(await (await runs.start('nested')).result()).toMatchObject({ text: 'Started.' })
    expect(await (await runs.get('run_nested')).result()).toMatchObject({ text: 'Done.' })
  })

  test('DU-24 a failed run rejects with the work done so far', async () => {
    const run = await runs.start('not in the script')
    const error = await failureOf(run.result())
    expect(error.run.runId).toBe(run.runId)
    expect((await log.inspect({ kind: 'run', id: run.runId }))?.status).toBe('failed')
  })

  test('DU-25 an unknown run is not found', async () => {
    const unknown = { code: 'run_not_found', message: 'Neither the engine nor the log has a run `run_none`.' }
    await expect(runs.get('run_none')).rejects.toMatchObject(unknown)
    await expect(runs.pending('run_none')).rejects.toMatchObject(unknown)
    await expect(runs.answer('run_none', [])).rejects.toMatchObject(unknown)
    expect(await runs.cancel('run_none')).toBe(false)
  })

  test('DU-26 they do not repeat a step that the engine repeats', async () => {
    sent.length = 0
    const run = await runs.start('approve')
    const { pending } = await run.result()
    const decisions = pending.map(({ callId }) => ({ callId, approved: true }))
    const { text } = await (await runs.answer(run.runId, decisions)).result()
    const before = await eventsAfter(run.runId)
    const workflows = await DBOS.listWorkflows({
      workflowName: 'thinharness',
      attributes: { thinharnessRun: run.runId },
    })
    for (const { workflowID } of workflows) {
      const handle = await DBOS.rewindWorkflow(workflowID, { queueName: 'thinharness' })
      await handle.getResult({ pollingIntervalMs: 50 })
    }
    expect(await eventsAfter(run.runId)).toEqual(before)
    expect([sent.length, text]).toEqual([2, 'Sent.'])
  })

  test('DU-27 a host that has already launched DBOS gets an error that asks to configure it earlier', async () => {
    await expect(dbosRuns({ dbos: DBOS, log, harness: harnessOf(options), name: 'late' })).rejects.toMatchObject({
      code: 'invalid_options',
      message: 'DBOS has been launched already: call `dbosRuns` before `DBOS.launch()`.',
    })
  })
})
