import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { memoryLog } from 'thinharness'
import type { HarnessOptions, JsonObject, ToolSpec } from 'thinharness'
import { call, hand, played, reportsIn, worker } from './background-support.js'
import { ask } from './children-support.js'
import { eventsIn, logWith, stored, watchedLog, YES, payTool } from '../resume/pause-support.js'
import { tool } from '../../harness/support.js'

const READ = { annotations: { readOnly: true } } as const

/** A run that leaves one run in the background, whose model says these lines. */
function leaving(
  lines: readonly (string | ReturnType<typeof call>)[],
  tools: readonly ToolSpec[],
  options: HarnessOptions,
) {
  const plays = { 'Go.': [hand('Work.'), 'I wait.', 'Done.'], 'Work.': lines }
  return played(plays, { subagents: [worker(tools)], ...options })
}

describe('after a crash', () => {
  test('at any event the run reaches the same end, and finished background work is not repeated', async () => {
    const done = new Map<string, number>()
    const step = tool(
      'step',
      (_, { idempotencyKey }) => done.set(idempotencyKey, (done.get(idempotencyKey) ?? 0) + 1),
      {
        onUnknownOutcome: 'report',
      },
    )
    const log = watchedLog()
    const lines = [call('step'), 'Worked.']
    const whole = await leaving(lines, [step], { log }).harness.run('Go.', { runId: 'run_p' })
    expect([...done.values()]).toEqual([1])
    for (let cut = 1; cut < log.kept.length; cut++) {
      const kept = log.kept.slice(0, cut)
      const begun = kept.some(({ kind, agentName }) => kind === 'tool_call_started' && agentName !== null)
      done.clear()
      const left = await logWith(kept)
      const result = await leaving(lines, [step], { log: left }).harness.recover('run_p')
      expect([cut, result.text, reportsIn(result.transcript)]).toEqual([cut, 'Done.', reportsIn(whole.transcript)])
      expect([cut, result.usage]).toEqual([cut, whole.usage])
      expect([cut, [...done.values()]]).toEqual([cut, begun ? [] : [1]])
    }
  })

  test('a stored report needs no new work', async () => {
    const log = watchedLog()
    await leaving(['Worked.'], [], { log }).harness.run('Go.', { runId: 'run_p' })
    const cut = log.kept.findIndex(({ kind }) => kind === 'background_reported') + 1
    const left = await logWith(log.kept.slice(0, cut).filter(({ runId }) => runId === 'run_p'))
    const { harness, model } = played({ 'Go.': [hand(), 'I wait.', 'Done.'] }, { log: left })
    const result = await harness.recover('run_p', { configPolicy: 'any' })
    expect([result.text, model.requests.length]).toEqual(['Done.', 1])
  })

  test('work that no tool can start any more is reported as failed', async () => {
    const log = watchedLog()
    const start = (isLeft: boolean) =>
      tool('start', (_, context) => (isLeft ? context.spawn({ prompt: 'Work.', background: true }).runId : 'none'), {
        onUnknownOutcome: 'retry',
      })
    const plays = { 'Go.': [call('start'), 'I wait.', 'Done.'], 'Work.': ['Worked.'] }
    await played(plays, { tools: [start(true)], log }).harness.run('Go.', { runId: 'run_p' })
    const cut = log.kept.findIndex(({ kind }) => kind === 'tool_call_completed') + 1
    const left = await logWith(log.kept.slice(0, cut))
    const result = await played(plays, { tools: [start(false)], log: left }).harness.recover('run_p')
    expect(reportsIn(result.transcript)).toMatchObject([
      { ok: false, metadata: { error_type: 'invalid_state', task: 'Work.' } },
    ])
    // It was told with the request behind the call, so that nothing was left to wait for.
    expect(result.text).toBe('I wait.')
  })

  test('a handler is entered again up to the point of starting it, with its previous arguments and answer', async () => {
    const entered: unknown[] = []
    const start = tool(
      'start',
      async (args, context) => {
        const who = await context.ask('Who?', z.string())
        entered.push([args['n'], who])
        const now = await context.spawn({ prompt: 'Now.', key: 'now' }).result
        context.spawn({ prompt: `Work for ${who}.`, key: 'later', background: true })
        entered.push(now.text)
        return 'started'
      },
      { onUnknownOutcome: 'retry', requiresApproval: true },
    )
    const plays = {
      'Go.': [{ calls: [{ name: 'start', arguments: { n: 1 } }] }, 'I wait.', 'Done.'],
      'Now.': ['N.'],
      'Work for Ann.': ['Worked.'],
    }
    const log = watchedLog()
    const { harness } = played(plays, { tools: [start], log })
    const asked = await harness.run('Go.', { runId: 'run_p' })
    const edited = await harness.resume(stored(asked), [{ ...YES, editedArguments: { n: 2 } }])
    await harness.resume(stored(edited), [{ callId: 'call_1', answer: 'Ann' }])
    expect(entered).toEqual([[2, 'Ann'], 'N.'])
    const cut =
      log.kept.findIndex(({ kind, parentRunId }) => kind === 'tool_call_completed' && parentRunId === null) + 1
    const again = played(plays, { tools: [start], log: await logWith(log.kept.slice(0, cut)) })
    const result = await again.harness.recover('run_p')
    // Not behind the spawn, and the run that it waited for is not asked again.
    expect(entered).toEqual([[2, 'Ann'], 'N.', [2, 'Ann']])
    expect(reportsIn(result.transcript)).toMatchObject([{ content: 'Worked.' }])
    expect(again.model.requests.length).toBe(3)
  })
})

describe('questions of background work', () => {
  const LINES = [call('ask'), 'Worked.']

  test.each([
    ['the same log', true],
    ['nothing but the state', false],
  ])('are pending once the run has nothing else to do, and continue elsewhere with %s', async (_, isSame) => {
    const log = memoryLog()
    const paused = await leaving(LINES, [ask], { log }).harness.run('Go.', { runId: 'run_p' })
    expect(paused).toMatchObject({ status: 'paused', stopReason: 'input_required', text: 'I wait.' })
    expect(paused.pending).toMatchObject([{ kind: 'question', callId: 'call_1/1/call_1', toolName: 'ask' }])
    expect(paused.pending[0]?.path[0]).toBe('run_p')
    expect(await log.inspect({ kind: 'run', id: 'run_p' })).toMatchObject({ status: 'paused', pending: paused.pending })
    const other = leaving(LINES, [ask], { log: isSame ? log : memoryLog() })
    const result = await other.harness.resume(stored(paused), [{ callId: 'call_1/1/call_1', answer: 'red' }])
    expect([result.text, result.usage.modelRequests]).toEqual(['Done.', 3])
    expect(reportsIn(result.transcript)).toMatchObject([{ ok: true, content: 'Worked.' }])
    expect(result.usage.children).toEqual({ modelRequests: 2, toolCalls: 1 })
    // The run at the top and that in the background had one request each left.
    expect(other.model.requests.length).toBe(2)
  })

  test('a paused run that is recovered gives its pause', async () => {
    const log = memoryLog()
    const { harness } = leaving(LINES, [ask], { log })
    const paused = await harness.run('Go.', { runId: 'run_p' })
    const again = await harness.recover('run_p')
    expect([again.pending, again.text, again.stopReason]).toEqual([paused.pending, 'I wait.', 'input_required'])
  })

  test('at any event after an answer a crash loses neither answer nor work', async () => {
    const log = watchedLog()
    const options = { log }
    const paused = await leaving(LINES, [ask], options).harness.run('Go.', { runId: 'run_p' })
    const from = log.kept.length
    await leaving(LINES, [ask], options).harness.resume(stored(paused), [{ callId: 'call_1/1/call_1', answer: 'red' }])
    for (let cut = from + 1; cut < log.kept.length; cut++) {
      const kept = log.kept.slice(0, cut)
      const left = await logWith(kept)
      const result = await leaving(LINES, [ask], { log: left }).harness.recover('run_p')
      const isAnswered = kept.some(({ kind }, index) => index >= from && kind === 'answer_received')
      expect([cut, result.text, result.pending.length]).toEqual(isAnswered ? [cut, 'Done.', 0] : [cut, 'I wait.', 1])
    }
  })

  test('other background work is reported first; open questions are pending again', async () => {
    const plays = {
      'Go.': [hand('One.', 'Two.', 'Three.'), 'I wait.', 'Three is there.', 'One is there.', 'All done.'],
      'One.': [call('ask'), 'First.'],
      'Two.': [call('ask'), 'Second.'],
      'Three.': [call('look'), 'Third.'],
    }
    const options = { subagents: [worker([ask, tool('look', () => 'seen', READ)])], log: memoryLog() }
    const paused = await played(plays, options).harness.run('Go.', { runId: 'run_p' })
    expect(paused.text).toBe('Three is there.')
    expect(paused.pending.map(({ callId }) => callId).sort()).toEqual(['call_1/1/call_1', 'call_2/1/call_1'])
    const half = await played(plays, options).harness.resume(stored(paused), [
      { callId: 'call_1/1/call_1', answer: 'red' },
    ])
    expect(half.text).toBe('One is there.')
    expect(half.pending.map(({ callId }) => callId)).toEqual(['call_2/1/call_1'])
    expect(await options.log.inspect({ kind: 'run', id: 'run_p' })).toMatchObject({
      status: 'paused',
      pending: half.pending,
    })
    const result = await played(plays, options).harness.resume(stored(half), [
      { callId: 'call_2/1/call_1', answer: 'blue' },
    ])
    expect(result.text).toBe('All done.')
    expect(reportsIn(result.transcript).map(({ content }) => content)).toEqual(['Third.', 'First.', 'Second.'])
  })

  test('a run that waits for people lets background work pause or end first', async () => {
    const { pay, ran } = payTool()
    const plays = {
      'Go.': [hand('One.', 'Two.'), call('pay'), 'Paid.', 'All done.', 'All done.'],
      'One.': [call('ask'), 'First.'],
      'Two.': [call('look'), 'Second.'],
    }
    const log = memoryLog()
    const options = { subagents: [worker([ask, tool('look', () => 'seen', READ)])], tools: [pay], log }
    const paused = await played(plays, options).harness.run('Go.', { runId: 'run_p' })
    expect(paused.pending.map(({ callId, kind }) => `${kind} ${callId}`)).toEqual([
      'approval call_3',
      'question call_1/1/call_1',
    ])
    const half = await played(plays, options).harness.resume(stored(paused), [
      { callId: 'call_1/1/call_1', answer: 'red' },
    ])
    expect([half.pending.map(({ callId }) => callId), ran]).toEqual([['call_3'], []])
    const result = await played(plays, options).harness.resume(stored(half), [{ callId: 'call_3', approved: true }])
    expect([result.text, ran.length]).toEqual(['Paid.', 1])
    expect(reportsIn(result.transcript)).toHaveLength(2)
  })

  test('runs below it are asked through it', async () => {
    const deeper = tool(
      'deeper',
      (_, context) => context.spawn({ prompt: 'Below.', background: true, tools: [ask] }).runId,
      { onUnknownOutcome: 'retry' },
    )
    const plays = {
      'Go.': [hand('Middle.'), 'I wait.', 'Top.'],
      'Middle.': [call('deeper'), 'I wait too.', 'Mid.'],
      'Below.': [call('ask'), 'Low.'],
    }
    const options = { subagents: [worker([deeper])], log: memoryLog() }
    const paused = await played(plays, options).harness.run('Go.', { runId: 'run_p' })
    const callId = 'call_1/1/call_1/1/call_1'
    expect(paused.pending).toMatchObject([{ callId, path: ['run_p', expect.anything(), expect.anything()] }])
    const result = await played(plays, options).harness.resume(stored(paused), [{ callId, answer: 'red' }])
    expect([result.text, result.usage.children]).toEqual(['Top.', { modelRequests: 5, toolCalls: 2 }])
  })
})

describe('elsewhere', () => {
  test('a fork after the call that started it starts it again, under its own run id', async () => {
    const log = watchedLog()
    const options = leaving(['Worked.'], [], { log })
    await options.harness.run('Go.', { runId: 'run_p' })
    const events = await eventsIn(log, 'run_p')
    const again = leaving(['Worked anew.'], [], { log: memoryLog() })
    const result = await again.harness.fork(events, { afterTurn: 1 }, { runId: 'run_f' })
    expect(result.text).toBe('Done.')
    const behind = await leaving(['Worked anew.'], [], { log: memoryLog() }).harness.fork(events, { afterTurn: 2 })
    expect([behind.text, reportsIn(behind.transcript)[0]?.['content']]).toEqual(['Done.', 'Worked.'])
    const [report] = reportsIn(result.transcript)
    expect(report?.['content']).toBe('Worked anew.')
    const then = events.find(({ kind }) => kind === 'background_reported') as unknown as JsonObject
    expect((report?.['metadata'] as JsonObject)['run_id']).not.toBe(then['childRunId'])
  })

  test('a background copy starts with the conversation up to its call, even if the crash came before', async () => {
    const log = watchedLog()
    const plays = { 'Go.': [hand('Look again.'), 'I wait.', 'Done.'] }
    const copy = { subagents: [{ name: 'worker', description: 'A copy.', history: 'fork', background: true } as const] }
    const model = played(plays, { ...copy, log })
    await model.harness.run('Go.', { runId: 'run_p' }).catch(() => undefined)
    const cut =
      log.kept.findIndex(({ kind, parentRunId }) => kind === 'tool_call_completed' && parentRunId === null) + 1
    const again = played(plays, { ...copy, log: await logWith(log.kept.slice(0, cut)) })
    await again.harness.recover('run_p').catch(() => undefined)
    const lengths = (requests: typeof again.model.requests) =>
      requests
        .filter(({ entries }) => JSON.stringify(entries).includes('you are the copy'))
        .map((each) => each.transcriptLength)
    expect(lengths(again.model.requests)).toEqual(lengths(model.model.requests))
    expect(lengths(again.model.requests)).toEqual([4])
  })
})
