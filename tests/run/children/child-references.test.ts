import { join } from 'node:path'
import { expect, test } from 'vitest'
import { fileLog, memoryLog } from 'thinharness'
import type { DurableEvent, LogStore, RunLog, ToolSpec } from 'thinharness'
import { sqliteLog } from 'thinharness/store/sqlite'
import { ScriptedModel } from 'thinharness/testing'
import { ask, delegateTool, playing } from './children-support.js'
import { eventsIn, stored } from '../resume/pause-support.js'
import { harnessOf, ofKind, tool } from '../../harness/support.js'
import { collect } from '../../support/collect.js'
import { temporaryFolder } from '../../support/folder.js'

/** Two children, one of which asks; the other has one that asks. */
const PLAYS = {
  go: [['delegate'], 'Done.'],
  a: [['ask'], 'Said A.'],
  b: [['deeper'], 'Said B.'],
  c: [['ask'], 'Said C.'],
}
const TOOLS = [delegateTool('delegate', { a: [ask], b: [delegateTool('deeper', { c: [ask] })] })]
const FIRST = { callId: 'call_1/a/call_1', answer: 'one' }
const SECOND = { callId: 'call_1/b/call_1/c/call_1', answer: 'two' }
const REFERENCE = {
  runId: expect.stringMatching(/^run_/) as string,
  seq: expect.any(Number) as number,
  digest: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
}

function harnessOn(log: RunLog, tools: readonly ToolSpec[] = TOOLS) {
  return harnessOf({ model: playing(PLAYS), tools, log })
}

test('a parent refers to its children: what they said is in their own logs alone', async () => {
  const log = memoryLog()
  await harnessOn(log).run('go', { runId: 'run_p' })
  const events = await eventsIn(log, 'run_p')
  expect(ofKind(events, 'approval_requested')).toMatchObject([{ callId: 'call_1', children: [REFERENCE, REFERENCE] }])
  const [reference] = ofKind(events, 'approval_requested')[0]!.children!
  expect((await log.inspect({ kind: 'run', id: reference!.runId }))?.lastSeq).toBe((reference as { seq: number }).seq)
  expect(await log.referrers?.({ kind: 'run', id: reference!.runId })).toEqual([{ kind: 'run', id: 'run_p' }])
  expect(JSON.stringify(events)).not.toContain('run_state')
})

test.each<[string, (path: string) => LogStore]>([
  ['a folder', (path) => fileLog(path)],
  ['SQLite', (path) => sqliteLog(join(path, 'runs.db'))],
])('it continues in another process, one answer at a time, from %s', async (_, open) => {
  const path = temporaryFolder()
  await harnessOn(open(path)).run('go', { runId: 'run_p' })
  expect((await harnessOn(open(path)).resume('run_p', [SECOND])).pending).toMatchObject([{ callId: FIRST.callId }])
  const result = await harnessOn(open(path)).resume('run_p', [FIRST])
  expect(result.toolCallRecords[0]?.output).toContain('Said A.')
  expect(result.toolCallRecords[0]?.output).toContain('Said B.')
  expect(result.usage.children).toEqual({ modelRequests: 6, toolCalls: 3 })
})

test('its stored state stands alone: at once, when it is recovered, and when it is answered in part', async () => {
  const log = memoryLog()
  const paused = await harnessOn(log).run('go', { runId: 'run_p' })
  const recovered = await harnessOn(log).recover('run_p')
  for (const result of [paused, recovered]) {
    expect(JSON.stringify(stored(result))).not.toContain('"digest"')
    const elsewhere = harnessOn(memoryLog())
    expect((await elsewhere.resume(stored(result), [FIRST, SECOND])).text).toBe('Done.')
  }
  const partly = await harnessOn(log).resume(stored(recovered), [FIRST])
  expect(partly.pending).toMatchObject([{ callId: SECOND.callId }])
  expect((await harnessOn(memoryLog()).resume(stored(partly), [SECOND])).text).toBe('Done.')
  expect((await harnessOn(log).resume(stored(partly), [SECOND])).text).toBe('Done.')
})

test('a state with changed children is not the one that the log holds', async () => {
  const log = memoryLog()
  const state = stored(await harnessOn(log).run('go', { runId: 'run_p' }))
  const changed = JSON.parse(JSON.stringify(state).replaceAll('Which?', 'Really?')) as typeof state
  await expect(harnessOn(log).resume(changed, [FIRST])).rejects.toMatchObject({ code: 'invalid_state' })
})

test('an exported log stands alone, and is replayed without the logs of the children', async () => {
  const log = memoryLog()
  const harness = harnessOn(log)
  await harness.run('go', { runId: 'run_p' })
  const exported: DurableEvent[] = await collect(log.export('run_p'))
  const [requested] = ofKind(exported, 'approval_requested')
  expect(requested?.children).toMatchObject([{ kind: 'run_state' }, { kind: 'run_state' }])
  expect(JSON.stringify(exported)).not.toContain('"digest"')
  const alone = memoryLog()
  await alone.append({ kind: 'run', id: 'run_p' }, exported)
  expect((await harnessOn(alone).resume('run_p', [FIRST, SECOND])).text).toBe('Done.')
  await harness.resume('run_p', [FIRST, SECOND])
  expect((await harnessOn(memoryLog()).replay(await collect(log.export('run_p')))).text).toBe('Done.')
})

test('a child that the log has lost ends its call with an error', async () => {
  const log = memoryLog()
  await harnessOn(log).run('go', { runId: 'run_p' })
  const left = memoryLog()
  await left.append({ kind: 'run', id: 'run_p' }, await eventsIn(log, 'run_p'))
  const result = await harnessOn(left).resume('run_p', [FIRST])
  expect(result.toolCallRecords[0]?.output).toMatch(
    /does not hold run `run_\w+` up to event \d+, which its parent needs/,
  )
})

test('a log in memory keeps the children of a run for as long as the run', async () => {
  const log = memoryLog({ keepEnded: 1 })
  await harnessOn(log).run('go', { runId: 'run_p' })
  expect(await collect(log.list({ parentRunId: 'run_p' }))).toHaveLength(2)
  expect((await harnessOn(log).resume('run_p', [FIRST, SECOND])).text).toBe('Done.')
  const model = new ScriptedModel().says('One.').says('Two.')
  for (const runId of ['run_1', 'run_2']) await harnessOf({ model, log }).run('Go.', { runId })
  expect((await collect(log.list())).map(({ runId }) => runId)).toEqual(['run_2'])
})

test('a background run is referred to as well', async () => {
  const leave = tool(
    'leave',
    (_, { spawn }) => spawn({ prompt: 'a', agentName: 'a', tools: [ask], background: true }).runId,
    {
      onUnknownOutcome: 'retry',
    },
  )
  const plays = { ...PLAYS, go: [['leave'], 'Waiting.', 'Done.'] }
  const log = memoryLog()
  const harness = (on: RunLog) => harnessOf({ model: playing(plays), tools: [leave], log: on })
  const paused = await harness(log).run('go', { runId: 'run_p' })
  const requested = ofKind(await eventsIn(log, 'run_p'), 'approval_requested')
  expect(requested).toMatchObject([{ background: 'call_1/1', children: [REFERENCE] }])
  const answer = { callId: paused.pending[0]!.callId, answer: 'one' }
  expect((await harness(memoryLog()).resume(stored(await harness(log).recover('run_p')), [answer])).text).toBe('Done.')
  expect((await harness(log).resume('run_p', [answer])).text).toBe('Done.')
})
