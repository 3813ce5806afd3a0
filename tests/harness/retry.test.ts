import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { fileLog, memoryLog, ModelRetry } from 'thinharness'
import type { Harness, LogStore } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { eventsIn, logWith, stored } from '../run/resume/pause-support.js'
import { collect } from '../support/collect.js'
import { temporaryFolder } from '../support/folder.js'
import { eventsOf, failureOf, harnessOf, kinds, ofKind, tool } from './support.js'

describe('a failed run is retried in its own log', () => {
  test('after a provider error: the request is made again, and completed calls are not', async () => {
    const log = memoryLog()
    const ran: string[] = []
    const look = tool('look', () => void ran.push('look'))
    const model = new ScriptedModel().calls('look').fails(new Error('Down.')).says('Done.')
    const harness = harnessOf({ model, tools: [look], log })
    const failed = await failureOf(harness.run('Go.', { runId: 'run_1' }))
    expect(failed.run.transcript.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool'])
    const result = await harness.retry('run_1')
    expect([result.runId, result.text, ran.length]).toEqual(['run_1', 'Done.', 1])
    expect(result.usage).toMatchObject({ modelRequests: 2, toolCalls: 1 })
    const events = await eventsIn(log, 'run_1')
    expect(kinds(events)).toMatch(/run_failed run_started model_message run_completed$/)
    expect(ofKind(events, 'run_started').map(({ begun }) => begun)).toEqual(['fresh', 'retried'])
    expect((await harness.recover('run_1')).transcript).toEqual(result.transcript)
    expect((await harness.replay(events)).text).toBe('Done.')
  })

  test('after a limit it continues with a higher one', async () => {
    const log = memoryLog()
    const model = new ScriptedModel().calls('look').says('Done.')
    const harness = harnessOf({ model, tools: [tool('look')], log, limits: { modelRequests: 1 } })
    expect((await failureOf(harness.run('Go.', { runId: 'run_1' }))).code).toBe('limit_reached')
    expect((await failureOf(harness.retry('run_1'))).code).toBe('limit_reached')
    expect((await harness.retry('run_1', { limits: { modelRequests: 2 } })).text).toBe('Done.')
    expect(
      kinds(await eventsIn(log, 'run_1'))
        .split(' ')
        .filter((kind) => kind === 'run_failed'),
    ).toHaveLength(2)
  })

  test('after failures of a tool or of the answer: the model may try once more', async () => {
    const log = memoryLog()
    const picky = tool('picky', () => Promise.reject(new ModelRetry('Another one.')))
    const model = new ScriptedModel().calls('picky').says('Never mind.')
    const harness = harnessOf({ model, tools: [picky], log, toolRetries: 0 })
    expect((await failureOf(harness.run('Go.', { runId: 'run_1' }))).code).toBe('tool_retries_exceeded')
    expect((await harness.retry('run_1')).text).toBe('Never mind.')
    const answers = new ScriptedModel().says('one').says('{"n":1}')
    const typed = harnessOf({
      model: answers,
      outputType: z.object({ n: z.number() }),
      outputMode: 'prompted',
      outputRetries: 0,
      log,
    })
    expect((await failureOf(typed.run('Go.', { runId: 'run_2' }))).code).toBe('output_validation_failed')
    expect((await typed.retry('run_2')).output).toEqual({ n: 1 })
  })

  test('after it was cancelled: a call that had started is resolved as after a crash', async () => {
    let entered = 0
    const slow = tool('slow', () => void (entered += 1))
    const model = new ScriptedModel().calls('slow').says('Done.').says('It is unknown.')
    const whole = memoryLog()
    await harnessOf({ model, tools: [slow], log: whole }).run('Go.', { runId: 'run_1' })
    const events = await eventsIn(whole, 'run_1')
    const cut = events.findIndex(({ kind }) => kind === 'tool_call_started') + 1
    const log = await logWith(events.slice(0, cut))
    const harness = harnessOf({ model, tools: [slow], log })
    expect(await harness.cancel('run_1')).toBe(true)
    const retried = await eventsOf(harness.streamRetry('run_1', { deltas: false }))
    expect(kinds(retried)).toBe(
      'run_started tool_call_interrupted tool_call_completed model_request_started model_message run_completed',
    )
    expect(entered).toBe(1)
  })

  test('before its first request: its prompt is kept, and asked then', async () => {
    const log = memoryLog()
    const model = new ScriptedModel().says('Hello.')
    const harness = harnessOf({ model, log })
    const failed = await failureOf(harness.run('Go.', { runId: 'run_1', signal: AbortSignal.abort() }))
    expect(failed.run.transcript).toMatchObject([{ role: 'user', content: [{ type: 'text', text: 'Go.' }] }])
    expect((await harness.retry('run_1')).transcript.map(({ role }) => role)).toEqual(['user', 'assistant'])
  })
})

test('a run that did not fail is treated as by `recover`: its result or its pause is returned again', async () => {
  const log = memoryLog()
  const pay = tool('pay', undefined, { requiresApproval: true })
  const model = new ScriptedModel().says('Done.').calls('pay')
  const harness = harnessOf({ model, tools: [pay], log })
  await harness.run('Go.', { runId: 'run_1' })
  const paused = await harness.run('Pay.', { runId: 'run_2' })
  expect((await harness.retry('run_1')).text).toBe('Done.')
  expect((await harness.retry('run_2')).pending).toEqual(paused.pending)
  expect((await failureOf(harness.retry('run_9'))).code).toBe('run_not_found')
})

test('a failed run is closed in the conversation that continues it', async () => {
  const log = memoryLog()
  const model = new ScriptedModel().calls('look').says('Next.')
  const harness = harnessOf({ model, tools: [tool('look')], log, limits: { modelRequests: 1 } })
  const failed = await failureOf(harness.run('Go.', { runId: 'run_1' }))
  const next = await harness.run('Then?', { history: { runId: 'run_1' } })
  expect(next.transcript.slice(0, 3)).toEqual(failed.run.transcript)
  const elsewhere = harnessOf({ model: new ScriptedModel().says('Next.') })
  const again = await elsewhere.run('Then?', { history: stored(failed.run) })
  expect(again.transcript.slice(0, 3)).toEqual(failed.run.transcript)
})

describe('a failed run whose conversation another run continues', () => {
  async function continued() {
    const log = memoryLog()
    const model = new ScriptedModel().fails(new Error('Down.')).says('Next.').says('Done.')
    const harness = harnessOf({ model, log })
    await failureOf(harness.run('Go.', { runId: 'run_1' }))
    await harness.run('Then?', { runId: 'run_2', history: { runId: 'run_1' } })
    return { log, harness }
  }

  test('is not retried', async () => {
    const { log, harness } = await continued()
    const before = await eventsIn(log, 'run_1')
    const refusal = { code: 'invalid_state', message: expect.stringMatching(/^retry: run `run_2` continues/) as string }
    expect(await failureOf(harness.retry('run_1'))).toMatchObject(refusal)
    expect(await failureOf(harness.streamRetry('run_1').result)).toMatchObject(refusal)
    expect(await eventsIn(log, 'run_1')).toEqual(before)
  })

  test('is retried once that run is removed; a thread that refers to it is no obstacle', async () => {
    const { log, harness } = await continued()
    const event = { kind: 'run_begun', seq: 1, at: new Date().toISOString() }
    await log.append({ kind: 'thread', id: 't_1' }, [event], { references: [{ kind: 'run', id: 'run_1' }] })
    await log.prune({ only: [{ kind: 'run', id: 'run_2' }] })
    expect((await harness.retry('run_1')).text).toBe('Done.')
  })
})

describe('an interrupted run that is given to `retry` is recovered', () => {
  async function interrupted(log: LogStore): Promise<{ harness: Harness; entered: string[] }> {
    const entered: string[] = []
    const slow = tool('slow', () => void entered.push('slow'))
    const model = new ScriptedModel().calls('slow').says('Done.').says('Done again.')
    const whole = memoryLog()
    await harnessOf({ model, tools: [slow], log: whole }).run('Go.', { runId: 'run_1' })
    const events = await eventsIn(whole, 'run_1')
    const cut = events.findIndex(({ kind }) => kind === 'tool_call_completed') + 1
    for (const event of events.slice(0, cut)) await log.append({ kind: 'run', id: 'run_1' }, [event])
    return { harness: harnessOf({ model, tools: [slow], log }), entered }
  }

  const logs = [
    ['in memory', () => memoryLog()],
    ['in a folder', () => fileLog(temporaryFolder())],
  ] as const
  test.each(logs)('%s: its log stays readable, and it is listed as completed', async (_name, open) => {
    const log = open()
    const { harness, entered } = await interrupted(log)
    expect((await harness.retry('run_1')).text).toBe('Done again.')
    expect(entered).toEqual(['slow'])
    const events = await eventsIn(log, 'run_1')
    expect(ofKind(events, 'run_started').map(({ begun }) => begun)).toEqual(['fresh', 'recovered'])
    const listed = await collect(log.list())
    expect(listed.map(({ runId, status }) => [runId, status])).toEqual([['run_1', 'completed']])
    expect((await harness.recover('run_1')).text).toBe('Done again.')
    expect((await harness.replay(events)).text).toBe('Done again.')
  })

  test('also by `ifExists` of `run` and of `map`', async () => {
    const first = await interrupted(memoryLog())
    expect((await first.harness.run('Go.', { runId: 'run_1', ifExists: 'retry' })).text).toBe('Done again.')
    const second = await interrupted(memoryLog())
    const rows = second.harness.map(['Go.'], (prompt) => ({ prompt, runId: 'run_1' }), { ifExists: 'retry' })
    expect(await collect(rows)).toMatchObject([{ status: 'completed', result: { text: 'Done again.' } }])
  })
})
