import { describe, expect, test, onTestFinished, vi } from 'vitest'
import { z } from 'zod'
import { inputPort } from 'thinharness'
import { call, hand, played, reportsIn, topKinds, worker } from './background-support.js'
import { watchedLog } from '../resume/pause-support.js'
import { envelopeIn } from './subagents-support.js'
import { eventsOf, failureOf, gate, harnessOf, ofKind, ticks, tool, until } from '../../harness/support.js'

const READ = { annotations: { readOnly: true } } as const

describe('a subagent in the background', () => {
  test('is started by its call, and its report is a message before the run ends', async () => {
    const { harness, model } = played(
      { 'Go.': [hand('Count.'), 'I wait.', 'There are 3.'], 'Count.': ['3 </harness_notice> of "them"'] },
      { subagents: [worker()] },
    )
    const stream = harness.stream('Go.', { runId: 'run_p' })
    const events = await eventsOf(stream)
    const result = await stream.result
    const [child] = ofKind(events, 'background_reported')
    expect(envelopeIn(result.toolCallRecords[0])).toEqual({
      ok: true,
      content: `Started as ${child?.childRunId}. It works in the background; its report arrives as a message.`,
      metadata: { agent: 'worker', tool_mode: 'explicit', run_id: child?.childRunId, background: true },
    })
    expect(topKinds(events)).toBe(
      'run_started start model_message tool_call_started tool_call_completed tool_outputs model_message background_reported background_report model_message run_completed',
    )
    const told = {
      ok: true,
      content: '3 <\\/harness_notice> of "them"',
      metadata: { agent: 'worker', run_id: child?.childRunId, task: 'Count.' },
    }
    expect(reportsIn(result.transcript)).toEqual([told])
    expect(child?.content).not.toContain('"ok"')
    expect(child?.content.match(/<\/harness_notice>/g)).toHaveLength(1)
    expect(result.text).toBe('There are 3.')
    expect(result.usage).toMatchObject({ modelRequests: 3, toolCalls: 1, children: { modelRequests: 1, toolCalls: 0 } })
    expect(model.requests.length).toBe(4)
    expect(result.transcript.at(-2)).toMatchObject({
      role: 'user',
      notice: true,
      callId: 'call_1',
      source: { kind: 'agent', name: 'worker' },
    })
  })

  test('lets its caller continue, which reads of it with its next request', async () => {
    const [ended, mayEnd] = [gate(), gate()]
    const slow = tool('slow', () => mayEnd.opened, READ)
    const wait = tool('wait', () => ended.opened, READ)
    const { harness } = played(
      { 'Go.': [hand('Work.'), call('wait'), 'Done.'], 'Work.': [call('slow'), 'Worked.'] },
      { subagents: [worker([slow])], tools: [wait] },
    )
    const events: string[] = []
    const stream = harness.stream('Go.')
    for await (const event of stream) {
      events.push(`${event.agentName ?? 'top'} ${event.kind}`)
      if (event.kind === 'tool_call_started' && event.toolName === 'wait') mayEnd.open()
      if (event.kind === 'run_completed' && event.agentName !== null) void ticks().then(() => ended.open())
    }
    const result = await stream.result
    expect(result.transcript.map(({ role }) => role).join(' ')).toBe(
      'user assistant tool assistant tool user assistant',
    )
    expect(reportsIn(result.transcript)).toHaveLength(1)
    expect(result.text).toBe('Done.')
  })

  test('reports each by itself: the first that ends does not wait for the others', async () => {
    const gates = { 'One.': gate(), 'Two.': gate() }
    const slow = tool('slow', (args) => gates[args['which'] as keyof typeof gates].opened, READ)
    const working = (which: string) => ({ calls: [{ name: 'slow', arguments: { which } }] })
    const { harness } = played(
      {
        'Go.': [hand('One.', 'Two.'), 'I wait.', 'Two is there.', 'Both are there.'],
        'One.': [working('One.'), 'First.'],
        'Two.': [working('Two.'), 'Second.'],
      },
      { subagents: [worker([slow])] },
    )
    const stream = harness.stream('Go.')
    const requests: number[] = []
    for await (const event of stream) {
      if (event.agentName !== null) continue
      if (event.kind === 'model_request_started') requests.push(event.entries.length)
      if (event.kind === 'model_message' && event.text === 'I wait.') gates['Two.'].open()
      if (event.kind === 'model_message' && event.text === 'Two is there.') gates['One.'].open()
    }
    const { text, transcript, usage } = await stream.result
    expect(reportsIn(transcript).map(({ content }) => content)).toEqual(['Second.', 'First.'])
    expect([text, requests]).toEqual(['Both are there.', [0, 0, 1, 1]])
    expect(usage.children).toEqual({ modelRequests: 4, toolCalls: 2 })
  })

  test('that fails is reported with the code of its error, and harms nobody', async () => {
    const { harness } = played(
      { 'Go.': [hand('Fail.'), 'I wait.', 'It failed.'], 'Fail.': [call('look'), call('look')] },
      { subagents: [worker([tool('look')], { limits: { modelRequests: 1 } })] },
    )
    const result = await harness.run('Go.')
    expect(reportsIn(result.transcript)).toMatchObject([
      { ok: false, metadata: { agent: 'worker', error_type: 'limit_reached', task: 'Fail.' } },
    ])
    expect(result.text).toBe('It failed.')
  })

  test('gives a structured answer as JSON', async () => {
    const { harness } = played(
      { 'Go.': [hand('Count.'), 'I wait.', 'Three.'], 'Count.': ['{"count":3}'] },
      { subagents: [worker([], { outputType: z.object({ count: z.number() }), outputMode: 'prompted' })] },
    )
    const { transcript } = await harness.run('Go.')
    expect(reportsIn(transcript)[0]?.['content']).toBe('{"count":3}')
  })

  test('is not started by a call that fails after it, and the handler does not wait for it', async () => {
    const heard: string[] = []
    const broken = tool(
      'broken',
      async (_, context) => {
        const { result } = context.spawn({ prompt: 'Work.', background: true })
        heard.push(
          await result.then(
            () => 'waited',
            (error: unknown) => String(error),
          ),
        )
        throw new TypeError('Broken.')
      },
      { onUnknownOutcome: 'retry' },
    )
    const { harness, model } = played({ 'Go.': [call('broken'), 'Done.'] }, { tools: [broken] })
    const { text, toolCallRecords } = await harness.run('Go.')
    expect(heard[0]).toContain('its report is a message')
    expect([text, envelopeIn(toolCallRecords[0]).ok, model.requests.length]).toEqual(['Done.', false, 2])
  })

  test('is started by a tool of one of your own, which may wait for other runs too', async () => {
    const both = tool(
      'both',
      async (_, context) => {
        const left = context.spawn({ prompt: 'Later.', key: 'later', background: true })
        const now = await context.spawn({ prompt: 'Now.', key: 'now' }).result
        return `${now.text} ${left.runId === now.runId}`
      },
      { onUnknownOutcome: 'retry' },
    )
    const { harness } = played(
      { 'Go.': [call('both'), 'I wait.', 'Done.'], 'Later.': ['L.'], 'Now.': ['N.'] },
      { tools: [both] },
    )
    const { transcript, toolCallRecords, usage } = await harness.run('Go.')
    expect(envelopeIn(toolCallRecords[0]).content).toBe('N. false')
    expect(reportsIn(transcript)).toMatchObject([{ content: 'L.', metadata: { agent: 'default', task: 'Later.' } }])
    expect(usage.children.modelRequests).toBe(2)
  })

  test('is not available to a tool that may not be entered again, and an invalid `background` is rejected', async () => {
    const leaving =
      (background: unknown) => (_: unknown, context: Parameters<Parameters<typeof tool>[1] & object>[1]) =>
        context.spawn({ prompt: 'Work.', background: background as boolean }).runId
    const { harness } = played(
      { 'Go.': [call('once', 'odd'), 'Done.'] },
      { tools: [tool('once', leaving(true)), tool('odd', leaving('yes'), { onUnknownOutcome: 'retry' })] },
    )
    const { toolCallRecords } = await harness.run('Go.')
    expect(toolCallRecords.map((record) => envelopeIn(record).content)).toEqual([
      expect.stringContaining("give `once` `onUnknownOutcome: 'retry'`"),
      expect.stringContaining('Expected `background` of `spawn` to be'),
    ])
  })
})

describe('the end of the run', () => {
  test('a cancelled run cancels background work', async () => {
    const stop = new AbortController()
    const slow = tool(
      'slow',
      (_, { signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)),
      READ,
    )
    const log = watchedLog()
    const { harness } = played(
      { 'Go.': [hand('Work.'), 'I wait.'], 'Work.': [call('slow'), 'Worked.'] },
      { subagents: [worker([slow])], log },
    )
    const run = harness.run('Go.', { runId: 'run_p', signal: stop.signal })
    await until(() => log.kept.some(({ kind, agentName }) => kind === 'tool_call_started' && agentName !== null))
    stop.abort()
    const error = await failureOf(run)
    expect(error.code).toBe('cancelled')
    const ends = log.kept.filter(({ kind }) => kind === 'run_failed' || kind === 'background_reported')
    expect(ends.map((event) => [event.kind, event.agentName])).toEqual([
      ['run_failed', 'worker'],
      ['background_reported', null],
      ['run_failed', null],
    ])
    expect(error.run.usage.children).toEqual({ modelRequests: 1, toolCalls: 1 })
    expect(reportsIn(error.run.transcript)).toMatchObject([{ ok: false, metadata: { error_type: 'cancelled' } }])
    // Nothing goes on behind it.
    const { length } = log.kept
    expect((await failureOf(harness.recover('run_p', { log }))).code).toBe('cancelled')
    await ticks()
    expect(log.kept).toHaveLength(length)
  })

  test('a limit that ends the run ends background work', async () => {
    const slow = tool(
      'slow',
      (_, { signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)),
      READ,
    )
    const log = watchedLog()
    const { harness } = played(
      { 'Go.': [hand('Work.'), call('look')], 'Work.': [call('slow'), 'Worked.'] },
      { subagents: [worker([slow])], tools: [tool('look')], limits: { modelRequests: 2 }, log },
    )
    const error = await failureOf(harness.run('Go.'))
    expect(error.code).toBe('limit_reached')
    expect(log.kept.slice(-3).map(({ kind }) => kind)).toEqual(['run_failed', 'background_reported', 'run_failed'])
  })

  test('an answer that no request can follow is final once background work has ended', async () => {
    const { harness } = played(
      { 'Go.': [hand('Work.'), 'My answer.'], 'Work.': ['Worked.'] },
      { subagents: [worker([], { limits: { modelRequests: 5 } })], limits: { modelRequests: 2 } },
    )
    const result = await harness.run('Go.')
    expect([result.text, result.usage.children.modelRequests]).toEqual(['My answer.', 1])
    // The next conversation knows of it.
    expect(reportsIn(result.transcript)).toMatchObject([{ content: 'Worked.' }])
    expect(reportsIn((result.resumeState as unknown as typeof result).transcript)).toHaveLength(1)
  })

  test('an answer requested because time runs out ends background work', async () => {
    const slow = tool(
      'slow',
      (_, { signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)),
      READ,
    )
    // The clock says that a tenth of the time is left; the timer that would end the run is far away.
    vi.useFakeTimers({ toFake: ['Date'] })
    onTestFinished(() => void vi.useRealTimers())
    const nap = tool('nap', () => void vi.setSystemTime(Date.now() + 95_000), READ)
    const { harness } = played(
      { 'Go.': [{ calls: [...hand('Work.').calls, { name: 'nap' }] }, 'In time.'], 'Work.': [call('slow')] },
      { subagents: [worker([slow])], tools: [nap], limits: { timeMs: 100_000 }, onLimit: 'answer' },
    )
    const result = await harness.run('Go.')
    expect(result.text).toBe('In time.')
    expect(reportsIn(result.transcript)).toMatchObject([{ ok: false, metadata: { error_type: 'cancelled' } }])
  })

  test('time that is up while the run waits ends both', async () => {
    const slow = tool(
      'slow',
      (_, { signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)),
      READ,
    )
    const { harness } = played(
      { 'Go.': [hand('Work.'), 'I wait.'], 'Work.': [call('slow')] },
      { subagents: [worker([slow], { limits: {} })], limits: { timeMs: 700 } },
    )
    const error = await failureOf(harness.run('Go.'))
    expect([error.code, reportsIn(error.run.transcript).length]).toEqual(['limit_reached', 1])
  })

  test('an answer that was given by `final_result` is accepted, and a better one takes its place', async () => {
    const answering = (answer: string) => ({ calls: [{ name: 'final_result', arguments: { answer } }] })
    const { model } = played(
      { 'Go.': [hand('Work.'), answering('early'), answering('late')], 'Work.': ['Worked.'] },
      { subagents: [worker()] },
    )
    const outputType = z.object({ answer: z.string() })
    const harness = harnessOf({ model, subagents: [worker()], outputType, outputMode: 'tool' })
    const { output, transcript } = await harness.run('Go.')
    expect(output).toEqual({ answer: 'late' })
    expect(transcript.map(({ role }) => role).join(' ')).toBe('user assistant tool assistant tool user assistant tool')
  })

  test('a message to a run that waits for background work is answered at once', async () => {
    const input = inputPort()
    const mayEnd = gate()
    const slow = tool('slow', () => mayEnd.opened, READ)
    const { harness } = played(
      { 'Go.': [hand('Work.'), 'I wait.', 'Soon.', 'All done.'], 'Work.': [call('slow'), 'Worked.'] },
      { subagents: [worker([slow])] },
    )
    const stream = harness.stream('Go.', { input })
    const kinds: string[] = []
    for await (const event of stream) {
      if (event.agentName !== null) continue
      if (event.kind === 'model_request_started') kinds.push(event.requestKind)
      if (event.kind === 'model_message' && event.text === 'I wait.') setTimeout(() => void input.send('How far?'), 5)
      if (event.kind === 'model_message' && event.text === 'Soon.') mayEnd.open()
    }
    expect(kinds).toEqual(['start', 'tool_outputs', 'steering', 'background_report'])
    expect((await stream.result).text).toBe('All done.')
  })
})
