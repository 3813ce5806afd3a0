import { describe, expect, test } from 'vitest'
import { memoryLog } from 'thinharness'
import type { Hook, LogStore, RunLog, RunStatus, ToolSpec } from 'thinharness'
import { call, hand, played, worker } from './background-support.js'
import { ask, delegateTool, playing } from './children-support.js'
import { eventsIn, logWith, stored, watchedLog } from '../resume/pause-support.js'
import { harnessOf, ofKind, tool } from '../../harness/support.js'

/** The statuses of all runs, by their prompts. */
async function statuses(log: LogStore): Promise<Readonly<Record<string, RunStatus>>> {
  const found: Record<string, RunStatus> = {}
  for await (const { runId, status } of log.list()) {
    const [started] = ofKind(await eventsIn(log, runId), 'run_started')
    found[started?.prompt as string] = status
  }
  return found
}

/** A tool that calls `then` once the run of that prompt has paused, and ends when it is aborted. */
function whenPaused(log: LogStore, prompt: string, then: () => void = () => undefined): ToolSpec {
  return tool('wait', async (_, { signal }) => {
    const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve))
    for (let status: RunStatus | undefined; status !== 'paused' && !signal.aborted;)
      status = (await statuses(log))[prompt]
    then()
    await aborted
  })
}

test('background work that waits for a person ends with the run that it works for', async () => {
  const log = memoryLog()
  const stop = new AbortController()
  const { harness } = played(
    { 'Go.': [hand('Work.'), call('wait')], 'Work.': [call('ask')] },
    { subagents: [worker([ask])], tools: [whenPaused(log, 'Work.', () => stop.abort())], log },
  )
  await expect(harness.run('Go.', { signal: stop.signal })).rejects.toMatchObject({ code: 'cancelled' })
  expect(await statuses(log)).toEqual({ 'Go.': 'cancelled', 'Work.': 'cancelled' })
})

test('a child run that waits for a person ends with its call, if that times out', async () => {
  const log = memoryLog()
  const delegate = delegateTool('delegate', { a: [ask], b: [whenPaused(log, 'a')] }, { timeoutMs: 300 })
  const model = playing({ go: [['delegate'], 'Done.'], a: [['ask']], b: [['wait']] })
  expect((await harnessOf({ model, tools: [delegate], log }).run('go')).text).toBe('Done.')
  expect(await statuses(log)).toEqual({ go: 'completed', a: 'cancelled', b: 'cancelled' })
})

test('a run that waits for a person below a child run ends with it', async () => {
  const log = memoryLog()
  const stop = new AbortController()
  const deeper = delegateTool('deeper', { c: [ask] })
  const tools = [delegateTool('delegate', { b: [deeper, whenPaused(log, 'c', () => stop.abort())] })]
  const model = playing({ go: [['delegate']], b: [['deeper', 'wait']], c: [['ask']] })
  const running = harnessOf({ model, tools, log }).run('go', { signal: stop.signal })
  await expect(running).rejects.toMatchObject({ code: 'cancelled' })
  expect(await statuses(log)).toEqual({ go: 'cancelled', b: 'cancelled', c: 'cancelled' })
})

describe('a child run that a crash has left', () => {
  const plays = { go: [['delegate'], 'Done.'], a: [['look'], 'A.'] }
  const look = tool('look', () => 'seen', { annotations: { readOnly: true } })

  /** What a crash leaves in the middle of the child run. */
  async function crashed(): Promise<LogStore> {
    const log = watchedLog()
    await harnessOf({ model: playing(plays), tools: [delegateTool('delegate', { a: [look] })], log }).run('go', {
      runId: 'run_p',
    })
    return logWith(
      log.kept.slice(
        0,
        log.kept.findIndex(({ kind }) => kind === 'tool_call_completed'),
      ),
    )
  }

  test.each<[string, ToolSpec]>([
    ['whose outcome is reported as unknown', delegateTool('delegate', { a: [] }, { onUnknownOutcome: 'report' })],
    [
      'whose outcome is found',
      delegateTool('delegate', { a: [] }, { reconcile: () => Promise.resolve({ outcome: 'happened', result: 'A.' }) }),
    ],
    ['whose handler goes another way', tool('delegate', () => 'Nothing to do.', { onUnknownOutcome: 'retry' })],
  ])('ends with its call, %s', async (_, delegate) => {
    const log = await crashed()
    const result = await harnessOf({ model: playing(plays), tools: [delegate], log }).recover('run_p')
    expect(result.text).toBe('Done.')
    expect(await statuses(log)).toEqual({ go: 'completed', a: 'cancelled' })
  })

  test('ends with its run, if that is cancelled before the call is entered again', async () => {
    const log = await crashed()
    const stop = new AbortController()
    const tools = [delegateTool('delegate', { a: [look] })]
    const hooks: Hook[] = [{ event: 'run_start', handler: () => stop.abort() }]
    const recovered = harnessOf({ model: playing(plays), tools, log, hooks }).recover('run_p', { signal: stop.signal })
    await expect(recovered).rejects.toMatchObject({ code: 'cancelled' })
    expect(await statuses(log)).toEqual({ go: 'cancelled', a: 'cancelled' })
  })

  test('is kept while its call waits for a person, and ends with it', async () => {
    const log = await crashed()
    const tools = [delegateTool('delegate', { a: [look] }, { onUnknownOutcome: 'pause' })]
    const asked = await harnessOf({ model: playing(plays), tools, log }).recover('run_p')
    expect(asked.pending).toMatchObject([{ kind: 'unknown_outcome' }])
    expect(await statuses(log)).toEqual({ go: 'paused', a: 'interrupted' })
    const verdict = { callId: 'call_1', answer: { outcome: 'did_not_happen' } }
    const done = await harnessOf({ model: playing(plays), tools, log }).resume(stored(asked), [verdict])
    expect(done.text).toBe('Done.')
    expect(await statuses(log)).toEqual({ go: 'completed', a: 'cancelled' })
  })

  test('ends with its call, also if the run of that call had had answers of people before the crash', async () => {
    const log = watchedLog()
    const lines = { go: [['delegate'], 'Done.'], b: [['ask'], ['deeper'], 'B.'], c: [['look'], 'C.'] }
    const harness = (deeper: ToolSpec, store: RunLog) =>
      harnessOf({ model: playing(lines), tools: [delegateTool('delegate', { b: [ask, deeper] })], log: store })
    const deeper = delegateTool('deeper', { c: [look] })
    const paused = await harness(deeper, log).run('go', { runId: 'run_p' })
    await harness(deeper, log).resume(stored(paused), [{ callId: 'call_1/b/call_1', answer: 'this' }])
    const looked = log.kept.findIndex((event) => event.kind === 'tool_call_completed' && event.toolName === 'look')
    const left = await logWith(log.kept.slice(0, looked))
    const otherWay = tool('deeper', () => 'Nothing to do.', { onUnknownOutcome: 'retry' })
    expect((await harness(otherWay, left).recover('run_p')).text).toBe('Done.')
    expect(await statuses(left)).toEqual({ go: 'completed', b: 'completed', c: 'cancelled' })
  })
})

test('a child run that waits for a person ends with its run, if that is cancelled while it is resumed', async () => {
  const log = memoryLog()
  const tools = [delegateTool('delegate', { a: [ask], b: [ask] })]
  const model = playing({ go: [['delegate'], 'Done.'], a: [['ask'], 'A.'], b: [['ask'], 'B.'] })
  const paused = await harnessOf({ model, tools, log }).run('go')
  const stop = new AbortController()
  const hooks: Hook[] = [{ event: 'run_start', handler: () => stop.abort() }]
  const answers = [{ callId: 'call_1/a/call_1', answer: 'one' }]
  const resumed = harnessOf({ model, tools, log, hooks }).resume(stored(paused), answers, { signal: stop.signal })
  await expect(resumed).rejects.toMatchObject({ code: 'cancelled' })
  expect(await statuses(log)).toEqual({ go: 'cancelled', a: 'cancelled', b: 'cancelled' })
})
