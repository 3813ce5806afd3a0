import { expect, test } from 'vitest'
import { memoryLog } from 'thinharness'
import type { History, ResumeState } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { selfContained } from '#run/resume/self-contained.js'
import { failureOf, harnessOf, ofKind, tool } from '../../harness/support.js'
import { eventsIn, jsonCopy, payTool, stored } from './pause-support.js'
import { collect } from '../../support/collect.js'

/** Three runs of one conversation, `run_1` to `run_3`, each of which continues the one before it. */
async function conversation() {
  const log = memoryLog()
  const model = new ScriptedModel().says('One.').calls('look').says('Two.').says('Three.')
  const harness = harnessOf({ model, tools: [tool('look')], log })
  await harness.run('First prompt.', { runId: 'run_1' })
  await harness.run('Second prompt.', { runId: 'run_2', history: { runId: 'run_1' } })
  const last = await harness.run('Third prompt.', { runId: 'run_3', history: { runId: 'run_2' } })
  return { log, harness, last }
}

const shown = (value: unknown): string => JSON.stringify(value)

test('a run stores its prompt, its replies and its answer once, and nothing of earlier runs', async () => {
  const { log, last } = await conversation()
  const words = ['First prompt.', 'One.', 'Second prompt.', 'Two.', 'Third prompt.', 'Three.']
  const logs = await Promise.all(['run_1', 'run_2', 'run_3'].map(async (id) => shown(await eventsIn(log, id))))
  expect(words.map((word) => logs.map((text) => text.split(word).length - 1).join(' '))).toEqual([
    ...['1 0 0', '1 0 0', '0 1 0', '0 1 0', '0 0 1', '0 0 1'],
  ])
  expect(words.map((word) => shown(last.transcript).split(word).length - 1)).toEqual([1, 1, 1, 1, 1, 1])
  const [started] = ofKind(await eventsIn(log, 'run_3'), 'run_started')
  expect(started?.history).toEqual({ runId: 'run_2', seq: 8, entryId: 'e6' })
})

test('a run can be loaded with the whole conversation, recovered, replayed and forked', async () => {
  const { log, harness, last } = await conversation()
  const events = await eventsIn(log, 'run_3')
  expect((await harness.recover('run_3')).transcript).toEqual(last.transcript)
  expect((await harness.replay(events)).transcript).toEqual(last.transcript)
  const model = new ScriptedModel().says('Four.')
  const forked = await harness.fork(events, { afterTurn: 1, prompt: 'Fourth prompt.' }, { model })
  expect(forked.transcript.slice(0, -2)).toEqual(last.transcript)
})

test('a self-contained log holds the conversation', async () => {
  const { log, last } = await conversation()
  const alone = await collect(selfContained(log, await eventsIn(log, 'run_3')))
  const elsewhere = harnessOf({ model: new ScriptedModel(), tools: [tool('look')] })
  expect((await elsewhere.replay(alone as never)).transcript).toEqual(last.transcript)
  const failed = await failureOf(elsewhere.replay(await eventsIn(log, 'run_3')))
  expect(failed.code).toBe('invalid_log')
  expect(failed.message).toMatch(/does not hold the conversation of run `run_2` up to event 8/)
})

test('a state is stored by reference in a log that has its run, and whole in another', async () => {
  const { log, harness, last } = await conversation()
  const model = new ScriptedModel().says('Four.').says('Four.')
  await harness.run('More.', { runId: 'run_4', model, history: stored(last) })
  const [here] = ofKind(await eventsIn(log, 'run_4'), 'run_started')
  expect(here?.history).toEqual({ runId: 'run_3', seq: 4, entryId: 'e8' })
  const other = memoryLog()
  await harnessOf({ model, log: other }).run('More.', { runId: 'run_4', history: stored(last) })
  const [there] = ofKind(await eventsIn(other, 'run_4'), 'run_started')
  expect(there?.history).toEqual(last.transcript)
})

test('a modified state is rejected by a log that has its run', async () => {
  const { harness, last } = await conversation()
  const state = jsonCopy(stored(last)) as ResumeState & { transcript: { parts: { text: string }[] }[] }
  state.transcript[7]!.parts[0]!.text = 'Something else.'
  const failed = await failureOf(harness.run('More.', { history: state }))
  expect(failed.code).toBe('invalid_state')
  expect(failed.message).toMatch(/run `run_3` is not the one that the log holds/)
})

test('a held call does not run without its answer, even if its state was modified', async () => {
  const { pay, ran } = payTool()
  const log = memoryLog()
  const model = new ScriptedModel().callsAll([{ name: 'pay' }, { name: 'pay' }])
  const harness = harnessOf({ model, tools: [{ ...pay, requiresApproval: () => true }], log })
  const state = jsonCopy(stored(await harness.run('Go.'))) as ResumeState & { phase: { calls: { waiting: [] }[] } }
  state.phase.calls[0]!.waiting = []
  const failed = await failureOf(harness.resume(state, [{ callId: 'call_2', approved: true }]))
  expect(failed.code).toBe('invalid_state')
  expect(ran).toEqual([])
})

test('a fork of a run with a pause has the result of the call, and does not run it again', async () => {
  const { pay, ran } = payTool()
  const log = memoryLog()
  const model = new ScriptedModel().calls('pay').says('Paid.').says('Also paid.')
  const harness = harnessOf({ model, tools: [pay], log })
  const paused = await harness.run('Pay.', { runId: 'run_1' })
  await harness.resume(stored(paused), [{ callId: 'call_1', approved: true }])
  expect(ran).toHaveLength(1)
  const forked = await harness.fork(await eventsIn(log, 'run_1'), { afterTurn: 1 })
  expect(forked.text).toBe('Also paid.')
  expect(forked.toolCallRecords[0]?.output).toMatch(/paid/)
  expect(ran).toHaveLength(1)
})

test('a waiting run is recovered without a claim: an answer can arrive meanwhile', async () => {
  const { pay } = payTool()
  const log = memoryLog()
  const harness = harnessOf({ model: new ScriptedModel().calls('pay'), tools: [pay], log })
  const paused = await harness.run('Pay.', { runId: 'run_1' })
  expect(await log.claim({ kind: 'run', id: 'run_1' }, 'somebody', 60_000)).toBe(true)
  expect((await harness.recover('run_1')).pending).toEqual(paused.pending)
})

test('a given conversation with a call without an id is refused', async () => {
  const { last } = await conversation()
  const entries = JSON.parse(shown(last.transcript).replaceAll('"callId":"call_1"', '"callId":""')) as History
  const harness = harnessOf({ model: new ScriptedModel() })
  const failed = await failureOf(harness.run('More.', { history: entries }))
  expect(failed).toMatchObject({ code: 'invalid_state', message: 'history: a call has no id.' })
})
