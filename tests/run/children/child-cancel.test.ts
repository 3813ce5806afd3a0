import { expect, test } from 'vitest'
import { fileLog, memoryLog } from 'thinharness'
import type { HarnessError, LogStore, RunStatus } from 'thinharness'
import { ask, delegateTool, playing } from './children-support.js'
import { eventsIn, logWith, watchedLog } from '../resume/pause-support.js'
import { gate, harnessOf, ofKind, tool } from '../../harness/support.js'
import { temporaryFolder } from '../../support/folder.js'

/** A run whose child asks a person, and whose grandchild does. */
const PLAYS = { go: [['delegate'], 'Done.'], a: [['ask'], 'A.'], b: [['deeper'], 'B.'], c: [['ask'], 'C.'] }
const TOOLS = [delegateTool('delegate', { a: [ask], b: [delegateTool('deeper', { c: [ask] })] })]
const ANSWERS = [
  { callId: 'call_1/a/call_1', answer: 'one' },
  { callId: 'call_1/b/call_1/c/call_1', answer: 'two' },
]

async function statuses(log: LogStore): Promise<Readonly<Record<string, RunStatus>>> {
  const found: Record<string, RunStatus> = {}
  for await (const { runId, status, parent } of log.list()) {
    const [started] = ofKind(await eventsIn(log, runId), 'run_started')
    found[parent === null ? 'top' : (started?.prompt as string)] = status
  }
  return found
}

const ALL_CANCELLED = { top: 'cancelled', a: 'cancelled', b: 'cancelled', c: 'cancelled' }

test('a paused run is cancelled together with its child runs, in memory and in a folder', async () => {
  const folder = temporaryFolder()
  for (const log of [memoryLog(), fileLog(folder)]) {
    const harness = harnessOf({ model: playing(PLAYS), tools: TOOLS, log })
    await harness.run('go', { runId: 'run_p' })
    expect(await statuses(log)).toEqual({ top: 'paused', a: 'paused', b: 'paused', c: 'paused' })
    expect(await harness.cancel('run_p')).toBe(true)
    expect(await statuses(log)).toEqual(ALL_CANCELLED)
    expect(await harness.cancel('run_p')).toBe(false)
  }
})

test('a run in progress is cancelled together with its paused child runs', async () => {
  const begun = gate()
  const slow = tool('slow', async (_, { signal }) => {
    begun.open()
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
  })
  const log = memoryLog()
  const plays = { ...PLAYS, go: [['delegate', 'slow'], 'Done.'] }
  const harness = harnessOf({ model: playing(plays), tools: [...TOOLS, slow], log })
  const running = harness.run('go', { runId: 'run_p' }).catch(() => undefined)
  await begun.opened
  for await (const event of harness.follow('run_p')) if (event.kind === 'approval_requested') break
  expect(await harness.cancel('run_p')).toBe(true)
  expect(await statuses(log)).toEqual(ALL_CANCELLED)
  await running
})

test('one child run in progress is cancelled by its id: its parent reads so, and the others go on', async () => {
  const log = memoryLog()
  const begun = gate()
  let waiting = 0
  const wait = tool('wait', async (_, { signal }) => {
    if (++waiting === 3) begun.open()
    await Promise.race([release.opened, new Promise((resolve) => signal.addEventListener('abort', resolve))])
  })
  const release = gate()
  const ids: string[] = []
  const delegate = tool('delegate', async (_, { spawn }) => {
    const runs = ['a', 'b', 'c'].map((key) => spawn({ prompt: key, key, tools: [wait] }))
    ids.push(...runs.map(({ runId }) => runId))
    const ends = await Promise.allSettled(runs.map(({ result }) => result))
    return ends.map((end) => (end.status === 'fulfilled' ? end.value.text : (end.reason as HarnessError).code))
  })
  const plays = { go: [['delegate'], 'Done.'], a: [['wait'], 'A.'], b: [['wait'], 'B.'], c: [['wait'], 'C.'] }
  const harness = harnessOf({ model: playing(plays), tools: [delegate], log })
  const running = harness.run('go', { runId: 'run_p' })
  await begun.opened
  expect(await harness.cancel(ids[1]!)).toBe(true)
  release.open()
  const { toolCallRecords } = await running
  expect(toolCallRecords[0]?.output).toContain(String.raw`[\"A.\",\"cancelled\",\"C.\"]`)
  expect(await statuses(log)).toEqual({ top: 'completed', a: 'completed', b: 'cancelled', c: 'completed' })
  expect([await harness.cancel(ids[0]!), await harness.cancel(ids[1]!)]).toEqual([false, false])
})

test('child runs that were cancelled with a paused run continue when that is retried and answered', async () => {
  const log = memoryLog()
  const harness = harnessOf({ model: playing(PLAYS), tools: TOOLS, log })
  const paused = await harness.run('go', { runId: 'run_p' })
  await harness.cancel('run_p')
  const again = await harness.retry('run_p')
  expect(again.pending).toEqual(paused.pending)
  const result = await harness.resume('run_p', ANSWERS)
  expect(result.text).toBe('Done.')
  expect(result.toolCallRecords[0]?.output).toContain('A.')
  expect(await statuses(log)).toEqual({ top: 'completed', a: 'completed', b: 'completed', c: 'completed' })
  for await (const { runId } of log.list()) {
    const begun = ofKind(await eventsIn(log, runId), 'run_started').map((event) => event.begun)
    expect(begun).toEqual(runId === 'run_p' ? ['fresh', 'retried', 'resumed'] : ['fresh', 'retried'])
    if (begun.includes('resumed')) expect((await harness.replay(await eventsIn(log, runId))).text).toBe('Done.')
  }
})

test('child runs that were cancelled with an interrupted run continue when that is retried', async () => {
  const ran: string[] = []
  const look = tool('look', (_, { callId }) => void ran.push(callId), { annotations: { readOnly: true } })
  const plays = { go: [['delegate'], 'Done.'], a: [['look'], ['look'], 'A.'] }
  const tools = [delegateTool('delegate', { a: [look] })]
  const whole = watchedLog()
  await harnessOf({ model: playing(plays), tools, log: whole }).run('go', { runId: 'run_p' })
  const cut = whole.kept.findIndex(({ kind }) => kind === 'tool_call_completed') + 1
  ran.length = 0
  const log = await logWith(whole.kept.slice(0, cut))
  const harness = harnessOf({ model: playing(plays), tools, log })
  expect(await harness.cancel('run_p')).toBe(true)
  expect(await statuses(log)).toEqual({ top: 'cancelled', a: 'cancelled' })
  expect((await harness.retry('run_p')).text).toBe('Done.')
  expect(ran).toEqual(['call_2'])
  expect(await statuses(log)).toEqual({ top: 'completed', a: 'completed' })
})

test('a call that was cancelled in progress keeps its outcome when its run is retried', async () => {
  const begun = gate()
  const slow = tool('slow', async (_, { signal }) => {
    begun.open()
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
  })
  const log = memoryLog()
  const plays = { go: [['delegate'], 'Done.'], a: [['slow'], 'A.'] }
  const harness = harnessOf({ model: playing(plays), tools: [delegateTool('delegate', { a: [slow] })], log })
  const running = harness.run('go', { runId: 'run_p' }).catch(() => undefined)
  await begun.opened
  await harness.cancel('run_p')
  await running
  const result = await harness.retry('run_p')
  expect(result.toolCallRecords).toMatchObject([{ cancelled: true }])
  expect(await statuses(log)).toEqual({ top: 'completed', a: 'cancelled' })
})
