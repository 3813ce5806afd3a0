import { expect, test } from 'vitest'
import { memoryLog } from 'thinharness'
import type { LogStore, RunStatus, ToolSpec } from 'thinharness'
import { call, hand, played, worker } from './background-support.js'
import { ask, delegateTool, playing } from './children-support.js'
import { eventsIn } from '../resume/pause-support.js'
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
