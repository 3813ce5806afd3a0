import { expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { defineTool, memoryLog, ModelRetry } from 'thinharness'
import type { DurableEvent, RunLog } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { failureOf, harnessOf, tool } from '../../harness/support.js'
import { collect } from '../../support/collect.js'
import { temporaryFolder } from '../../support/folder.js'
import { oneIn } from '../../support/length.js'

async function eventsIn(log: RunLog, runId: string): Promise<DurableEvent[]> {
  const events: DurableEvent[] = []
  for await (const event of log.read({ kind: 'run', id: runId }))
    events.push(JSON.parse(JSON.stringify(event)) as DurableEvent)
  return events
}

const silent = (): ScriptedModel => new ScriptedModel()

const ask = defineTool({
  name: 'ask',
  description: 'Asks a person.',
  parameters: z.object({}),
  handler: async (_, context) =>
    JSON.stringify(await context.ask({ question: 'Which?' }, z.object({ color: z.string() }))),
})

test('RP-01 a run is replayed from its log: the same result, without a request or a tool', async () => {
  const log = memoryLog()
  let ran = 0
  const count = tool('count', () => `${++ran}`)
  using model = new ScriptedModel().calls('count', {}).calls('count', {}).says('Done.')
  const first = await harnessOf({ model, tools: [count], log }).run('Count.', {
    runId: 'run_r',
    limits: { modelRequests: 5 },
  })
  const events = await eventsIn(log, 'run_r')
  using nobody = silent()
  const again = await harnessOf({ model: nobody, tools: [count] }).replay(events)
  expect({ ...again, responses: [] }).toEqual({ ...first, responses: [] })
  expect(ran).toBe(2)
})

test('RP-02 a run that paused and continued in another process is replayed over both', async () => {
  const log = memoryLog()
  const pay = tool('pay', () => 'paid', { requiresApproval: true })
  using model = new ScriptedModel().calls('pay', { n: 1 }).calls('ask', {}).says('Done.')
  const harness = harnessOf({ model, tools: [pay, ask], log })
  const paused = await harness.run('Pay.', { runId: 'run_r' })
  const asked = await harness.resume(paused.resumeState!, [{ callId: paused.pending[0]!.callId, approved: true }])
  const first = await harness.resume(asked.resumeState!, [
    { callId: asked.pending[0]!.callId, answer: { color: 'red' } },
  ])
  using nobody = silent()
  const again = await harnessOf({ model: nobody, tools: [pay, ask] }).replay(await eventsIn(log, 'run_r'))
  expect({ ...again, responses: [] }).toEqual({ ...first, responses: [] })
})

test('RP-03 a run that failed ends with the same error', async () => {
  const log = memoryLog()
  using model = new ScriptedModel().calls('a', {}).calls('a', {})
  const options = { tools: [tool('a')], limits: { modelRequests: 2 } }
  const failed = harnessOf({ model, log, ...options }).run('Go.', { runId: 'run_r' })
  await expect(failed).rejects.toMatchObject({ code: 'limit_reached' })
  using nobody = silent()
  const again = harnessOf({ model: nobody, ...options }).replay(await eventsIn(log, 'run_r'))
  await expect(again).rejects.toMatchObject({ code: 'limit_reached', run: { stopReason: 'limit_reached' } })
})

test('RP-04 the first difference is reported if the code has changed', async () => {
  const log = memoryLog()
  using model = new ScriptedModel().calls('a', {}).says('Done.')
  await harnessOf({ model, log, tools: [tool('a')], instructions: 'Be kind.' }).run('Go.', { runId: 'run_r' })
  using nobody = silent()
  const harness = harnessOf({ model: nobody, tools: [tool('a')], instructions: 'Be strict.' })
  await expect(harness.replay(await eventsIn(log, 'run_r'))).rejects.toMatchObject({
    code: 'replay_mismatch',
    message: expect.stringContaining('event 2: `model_request_started` differs at `config.instructions`') as string,
  })
})

test('RP-05 a fork continues from a turn, with another prompt or unchanged, and can leave the world alone', async () => {
  const log = memoryLog()
  const sent: unknown[] = []
  const send = tool('send', (args) => sent.push(args))
  using model = new ScriptedModel().calls('send', { n: 1 }).calls('send', { n: 2 }).says('Done.')
  await harnessOf({ model, tools: [send], log }).run('Send.', { runId: 'run_r' })
  const events = await eventsIn(log, 'run_r')
  using other = new ScriptedModel().calls('send', { n: 3 }).says('Otherwise.')
  const fork = harnessOf({ model: other, tools: [send], log }).streamFork(
    events,
    { afterTurn: 1, prompt: 'Otherwise?' },
    { effects: 'dry' },
  )
  const result = await fork.result
  expect(result.text).toBe('Otherwise.')
  expect(result.runId).not.toBe('run_r')
  expect(sent).toEqual([{ n: 1 }, { n: 2 }])
  expect(result.transcript.map(({ role }) => role)).toEqual([
    'user',
    'assistant',
    'tool',
    'user',
    'assistant',
    'tool',
    'assistant',
  ])
  using third = new ScriptedModel().says('On.')
  const on = harnessOf({ model: third, tools: [send], log }).streamFork(events, { afterTurn: 1 })
  expect(await on.result).toMatchObject({ text: 'On.', usage: { modelRequests: 1 } })
  using nobody = silent()
  const again = await harnessOf({ model: nobody, tools: [send] }).replay(log.read({ kind: 'run', id: on.runId }))
  expect(again.text).toBe('On.')
  await expect(harnessOf({ model: nobody }).fork(events, { afterTurn: 9 })).rejects.toThrow(/from 0 to 3/)
  await expect(harnessOf({ model: nobody }).fork(events, { afterTurn: 3 })).rejects.toThrow(/give `prompt`/)
})

test('RP-06 the id of a run in place of its log is rejected at once', async () => {
  const harness = harnessOf({ model: new ScriptedModel() })
  const refusal = {
    code: 'invalid_options',
    message: expect.stringMatching(/iterable of its events, got `run_1`/) as string,
  }
  expect(() => harness.streamFork('run_1' as never, { afterTurn: 0 })).toThrow(
    expect.objectContaining(refusal) as Error,
  )
  await expect(harness.replay('run_1' as never)).rejects.toMatchObject(refusal)
})

test('RP-07 a steering message is replayed with the notice that it carries', async () => {
  const log = memoryLog()
  using model = new ScriptedModel().calls('a', {}).says('Done.')
  const limits = { modelRequests: 2 }
  let steer: (message: string) => unknown = () => undefined
  const harness = harnessOf({ model, log, limits, tools: [tool('a', () => void steer('Be brief.'))] })
  const stream = harness.stream('Go.', { runId: 'run_r' })
  steer = (message) => stream.steer(message)
  const first = await stream.result
  const events = await eventsIn(log, 'run_r')
  expect(JSON.stringify(events)).toContain('Be brief.\\n\\n<harness_notice')
  using nobody = silent()
  const again = await harnessOf({ model: nobody, limits, tools: [tool('a')] }).replay(events)
  expect(again.transcript).toEqual(first.transcript)
})

test('RP-07 a message that came while a reply was corrected is replayed after the correction', async () => {
  const log = memoryLog()
  let steer: (message: string) => unknown = () => undefined
  using model = new ScriptedModel().always(({ transcript }) => {
    if (transcript.length > 1) return { text: '{"n":1}' }
    steer('Be brief.')
    return { text: 'No JSON.' }
  })
  const limits = { modelRequests: 2 }
  const options = { limits, outputType: z.object({ n: z.number() }), outputMode: 'prompted', outputRetries: 1 } as const
  const stream = harnessOf({ model, log, ...options }).stream('Go.', { runId: 'run_r' })
  steer = (message) => stream.steer(message)
  const first = await stream.result
  const events = await eventsIn(log, 'run_r')
  expect(JSON.stringify(events)).toContain('Be brief.\\n\\n<harness_notice')
  using nobody = silent()
  const again = await harnessOf({ model: nobody, ...options }).replay(events)
  expect(again.transcript).toEqual(first.transcript)
})

test.each(['cancelled', 'out of time'])(
  'RP-08 a run that was aborted before its own rules ended it fails as it did: %s',
  async (cause) => {
    const log = memoryLog()
    const controller = new AbortController()
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const options = { outputType: z.object({ n: z.number() }), outputMode: 'prompted', outputRetries: 0 } as const
    using model = new ScriptedModel().says('No JSON.')
    const append = log.append.bind(log)
    vi.spyOn(log, 'append').mockImplementation(async (run, events, ...claim) => {
      await append(run, events, ...claim)
      if (!events.some(({ kind }) => kind === 'model_message')) return
      if (cause === 'cancelled') controller.abort(new Error('Enough.'))
      else vi.advanceTimersByTime(60_000)
    })
    const harness = harnessOf({ model, log, ...options, limits: { timeMs: 60_000 } })
    const code = cause === 'cancelled' ? 'cancelled' : 'limit_reached'
    await expect(harness.run('Go.', { runId: 'run_r', signal: controller.signal })).rejects.toMatchObject({ code })
    using nobody = silent()
    const again = harnessOf({ model: nobody, ...options, limits: { timeMs: 60_000 } })
    await expect(again.replay(await eventsIn(log, 'run_r'))).rejects.toMatchObject({ code })
  },
)

test('RP-09 a run whose process was killed anywhere, and that of its continuation too, can be replayed', async () => {
  const flaky = tool(
    'flaky',
    ({ n }) => {
      if (n === 0) throw new ModelRetry('Try again.')
      return 'ok'
    },
    { annotations: { idempotent: true } },
  )
  const batches = [
    [
      { name: 'flaky', arguments: { n: 0 } },
      { name: 'flaky', arguments: { n: 1 } },
      { name: 'ask', arguments: {} },
    ],
    [{ name: 'flaky', arguments: { n: 0 } }],
  ]
  const harnessWith = (log: RunLog) => {
    const model = new ScriptedModel().always(({ turn }) => {
      const calls = batches[turn]
      return calls === undefined ? 'Done.' : { calls }
    })
    return harnessOf({ model, tools: [flaky, ask], log })
  }
  /** The log of a run that goes on from these events to its end. */
  const finished = async (events: readonly DurableEvent[]): Promise<readonly DurableEvent[]> => {
    const log = memoryLog()
    if (events.length > 0) await log.append({ kind: 'run', id: 'run_r' }, events)
    const harness = harnessWith(log)
    let result = events.length > 0 ? await harness.recover('run_r') : await harness.run('Go.', { runId: 'run_r' })
    while (result.status === 'paused')
      result = await harness.resume(
        result.resumeState,
        result.pending.map(({ callId }) => ({ callId, answer: { color: 'red' } })),
      )
    expect(result.text).toBe('Done.')
    return eventsIn(log, 'run_r')
  }
  const replayed = async (events: readonly DurableEvent[]): Promise<string> =>
    (await harnessWith(memoryLog()).replay(events)).text
  const whole = await finished([])
  /** Each first kill has other second ones. */
  const EVERY = oneIn(5)
  let kills = 0
  for (let first = 1; first < whole.length; first++) {
    const once = await finished(whole.slice(0, first))
    expect(await replayed(once), `killed after event ${first}`).toBe('Done.')
    for (let second = first + 1 + (first % EVERY); second < once.length; second += EVERY) {
      const twice = await finished(once.slice(0, second))
      expect(await replayed(twice), `killed after events ${first} and ${second}`).toBe('Done.')
      kills += 1
    }
  }
  expect(kills).toBeGreaterThan(100 / EVERY)
})

test('a run that was recorded in one folder is replayed in another: the path of the workspace is no difference', async () => {
  const model = () => new ScriptedModel().calls('look').says('Done.')
  const log = memoryLog()
  const [here, there] = [temporaryFolder(), temporaryFolder()]
  const recorded = harnessOf({
    model: model(),
    tools: [tool('look')],
    root: here,
    instructions: `Work in ${here}.`,
    log,
  })
  await recorded.run('Go.', { runId: 'run_1' })
  const events = await eventsIn(log, 'run_1')
  const other = harnessOf({ model: model(), tools: [tool('look')], root: there, instructions: `Work in ${there}.` })
  expect((await other.replay(events)).text).toBe('Done.')
  const unlike = harnessOf({ model: model(), tools: [tool('look')], root: there, instructions: 'Rest.' })
  expect((await failureOf(unlike.replay(events))).code).toBe('replay_mismatch')
})

test('a run of an unknown version is refused by whoever would go on with it, and stays as it is', async () => {
  const log = memoryLog()
  const harness = harnessOf({ model: new ScriptedModel().always('Done.'), log })
  await harness.run('Go.', { runId: 'run_1' })
  const stored = await eventsIn(log, 'run_1')
  const events = stored.map((event) => ({ ...event, runId: 'run_2', version: 99 })) as object[] as DurableEvent[]
  await log.append({ kind: 'run', id: 'run_2' }, events)
  for (const attempt of [
    () => harness.recover('run_2'),
    () => harness.retry('run_2'),
    () => harness.resume('run_2', []),
    () => harness.cancel('run_2'),
    () => collect(harness.follow('run_2')),
    () => harness.run('Go.', { runId: 'run_2', ifExists: 'continue' }),
    () => harness.run('On.', { history: { runId: 'run_2' } }),
    () => harness.replay(events),
    () => harness.fork(events, { afterTurn: 1, prompt: 'On.' }),
  ])
    await expect(attempt()).rejects.toMatchObject({
      code: 'invalid_log',
      message: 'The log of run `run_2` has version `99`, and this package reads version 3.',
    })
  expect(await eventsIn(log, 'run_2')).toEqual(events)
})

test('members and events of a later version are kept, and are no difference', async () => {
  const log = memoryLog()
  const model = new ScriptedModel().calls('look').says('Done.')
  await harnessOf({ model, tools: [tool('look')], log }).run('Go.', { runId: 'run_1' })
  const later: object[] = []
  for (const event of await eventsIn(log, 'run_1')) {
    const usage = 'usage' in event ? { usage: { ...event.usage, future: 1 } } : {}
    later.push({ ...event, ...usage, future: { a: 1 }, seq: later.length + 1 })
    if (later.length % 3 === 0 && event.kind !== 'run_completed')
      later.push({ ...event, kind: 'future_kind', seq: later.length + 1 })
  }
  const events = later as DurableEvent[]
  expect((await harnessOf({ model, tools: [tool('look')] }).replay(events)).text).toBe('Done.')
  const cut = memoryLog()
  for (const event of events.slice(0, 5)) await cut.append({ kind: 'run', id: 'run_1' }, [event])
  const recovering = harnessOf({ model: new ScriptedModel().always('Done.'), tools: [tool('look')], log: cut })
  expect((await recovering.recover('run_1')).text).toBe('Done.')
  expect((await eventsIn(cut, 'run_1')).slice(0, 5)).toEqual(JSON.parse(JSON.stringify(events.slice(0, 5))))
})
