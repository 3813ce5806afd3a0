import { describe, expect, test } from 'vitest'
import { fileLog, memoryLog } from 'thinharness'
import type { HarnessOptions, LogStore, ToolSpec } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { call, hand, played, reportsIn, worker } from '../run/children/background-support.js'
import { delegateTool, playing } from '../run/children/children-support.js'
import { eventsIn } from '../run/resume/pause-support.js'
import { temporaryFolder } from '../support/folder.js'
import { eventsOf, failureOf, gate, harnessOf, kinds, ofKind, tool, until } from './support.js'

const place = temporaryFolder()
const never = new Promise<never>(() => undefined)

/** A log that outlives the process, in a folder of its own. */
function lasting(name: string): LogStore {
  return fileLog(`${place}/${name}`)
}

/** A tool that ends when `opened` is, and the calls that it has had. */
function waiting(name: string, opened: Promise<unknown>): ToolSpec & { readonly ran: string[] } {
  const ran: string[] = []
  const spec = tool(name, async () => {
    ran.push('begins')
    await opened
    ran.push('ends')
    return 'waited'
  })
  return { ...spec, ran }
}

async function statusIn(log: LogStore, runId: string): Promise<string | undefined> {
  return (await log.inspect({ kind: 'run', id: runId }))?.status
}

describe('closing a harness leaves the runs whose log outlives the process', () => {
  test('during a request: the stream ends with `run_left`, the result rejects with `interrupted`, and nothing more is stored', async () => {
    const log = lasting('request')
    const asked = gate()
    const model = new ScriptedModel().calls('look').replies(() => (asked.open(), never))
    const harness = harnessOf({ model, tools: [tool('look')], log })
    const stream = harness.stream('Go.', { runId: 'run_1' })
    const reading = eventsOf(stream)
    await asked.opened
    await harness.close()
    const events = await reading
    expect(events.at(-1)).toMatchObject({ kind: 'run_left', durable: false, usage: { modelRequests: 1 } })
    const failed = await failureOf(stream.result)
    expect([failed.code, failed.run.stopReason, failed.run.usage.modelRequests]).toEqual([
      'interrupted',
      'interrupted',
      1,
    ])
    const stored = await eventsIn(log, 'run_1')
    expect(kinds(stored)).toMatch(/tool_call_completed model_request_started$/)
    expect(await statusIn(log, 'run_1')).toBe('interrupted')
    const next = harnessOf({ model: new ScriptedModel().says('Done.'), tools: [tool('look')], log })
    expect((await next.recover('run_1')).text).toBe('Done.')
    expect(kinds(await eventsIn(log, 'run_1')).startsWith(kinds(stored))).toBe(true)
    expect((await next.replay(await eventsIn(log, 'run_1'))).text).toBe('Done.')
  })

  test('`await using` does the same', async () => {
    const log = lasting('using')
    const model = new ScriptedModel().replies(() => never)
    let run: Promise<unknown>
    {
      await using harness = harnessOf({ model, log })
      run = harness.run('Go.', { runId: 'run_1' })
      void run.catch(() => undefined)
      await until(() => model.requests.length >= 1)
    }
    expect((await failureOf(run)).code).toBe('interrupted')
    expect(await statusIn(log, 'run_1')).toBe('interrupted')
  })

  test('a tool call in progress may end, its outcome is stored, and the calls after it do not begin', async () => {
    const log = lasting('grace')
    const opened = gate()
    const slow = waiting('slow', opened.opened)
    const later = waiting('later', Promise.resolve())
    const options = { tools: [{ ...slow, sequential: true }, later], log }
    const model = new ScriptedModel().replies(call('slow', 'later'))
    const harness = harnessOf({ ...options, model })
    const run = harness.run('Go.', { runId: 'run_1' })
    await until(() => slow.ran.length === 1)
    const closing = harness.close()
    opened.open()
    expect((await failureOf(run)).code).toBe('interrupted')
    await closing
    expect([slow.ran, later.ran, model.requests.length]).toEqual([['begins', 'ends'], [], 1])
    expect(kinds(await eventsIn(log, 'run_1'))).toMatch(/tool_call_started tool_call_completed$/)
    await harnessOf({ ...options, model: new ScriptedModel().says('Done.') }).recover('run_1')
    expect([slow.ran, later.ran]).toEqual([
      ['begins', 'ends'],
      ['begins', 'ends'],
    ])
  })

  test('a tool call that takes longer than `timeoutMs` gets its signal and is resolved as after a crash', async () => {
    const log = lasting('timeout')
    let aborted = 0
    const begun = gate()
    const slow = tool('slow', async (_, { signal }) => {
      begun.open()
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      aborted += 1
      return 'stopped'
    })
    const harness = harnessOf({ model: new ScriptedModel().calls('slow'), tools: [slow], log })
    const run = failureOf(harness.run('Go.', { runId: 'run_1' }))
    await begun.opened
    await harness.close({ timeoutMs: 20 })
    expect([(await run).code, aborted]).toEqual(['interrupted', 1])
    expect(kinds(await eventsIn(log, 'run_1'))).toMatch(/tool_call_started$/)
    const next = harnessOf({ model: new ScriptedModel().says('Done.'), tools: [slow], log })
    const result = await next.recover('run_1')
    expect(result.toolCallRecords[0]?.output).toContain('UnknownOutcome')
  })

  test('a run that ends within `timeoutMs` ends as it does', async () => {
    const log = lasting('ends')
    const [asked, opened] = [gate(), gate()]
    const hooks: HarnessOptions['hooks'] = [
      {
        event: 'run_end',
        handler: async () => {
          asked.open()
          await opened.opened
        },
      },
    ]
    const harness = harnessOf({ model: new ScriptedModel().says('Done.'), hooks, log })
    const run = harness.run('Go.', { runId: 'run_1' })
    await asked.opened
    const closing = harness.close()
    opened.open()
    await closing
    expect((await run).text).toBe('Done.')
    expect(await statusIn(log, 'run_1')).toBe('completed')
  })

  test('a run that has not begun stores nothing', async () => {
    const log = lasting('unbegun')
    const harness = harnessOf({ model: new ScriptedModel().says('Done.'), log })
    const run = failureOf(harness.run('Go.', { runId: 'run_1' }))
    await harness.close()
    expect((await run).code).toBe('interrupted')
    expect(await eventsIn(log, 'run_1')).toEqual([])
    const next = harnessOf({ model: new ScriptedModel().says('Done.'), log })
    expect((await next.run('Go.', { runId: 'run_1' })).text).toBe('Done.')
  })

  test('hooks of the end of a run are not asked, and nobody has to read the stream', async () => {
    const log = lasting('hooks')
    const ended: string[] = []
    const asked = gate()
    const harness = harnessOf({
      model: new ScriptedModel().replies(() => (asked.open(), never)),
      hooks: [{ event: 'run_end', handler: () => void ended.push('ended') }],
      log,
    })
    const stream = harness.stream('Go.', { runId: 'run_1' })
    await asked.opened
    await harness.close()
    expect((await failureOf(stream.result)).code).toBe('interrupted')
    expect(ended).toEqual([])
  })

  test('a follower of the closed harness ends with the run', async () => {
    const log = lasting('follow')
    const asked = gate()
    const harness = harnessOf({ model: new ScriptedModel().replies(() => (asked.open(), never)), log })
    void failureOf(harness.run('Go.', { runId: 'run_1' }))
    await asked.opened
    const seen: string[] = []
    const following = (async () => {
      for await (const { kind } of harness.follow('run_1')) seen.push(kind)
    })()
    await until(() => seen.length >= 2)
    await harness.close()
    await following
    expect(seen.at(-1)).toBe('run_left')
  })
})

describe('child runs are left with their parent', () => {
  test('the call that waits for them has no outcome, and continues with them', async () => {
    const log = lasting('child')
    const opened = gate()
    const slow = waiting('slow', opened.opened)
    const plays = { 'Go.': [['delegate'], 'Done.'], one: [['slow'], 'One.'], two: [['slow', 'slow'], 'Two.'] }
    const tools = [delegateTool('delegate', { one: [slow], two: [slow] })]
    const harness = harnessOf({ model: playing(plays), tools, log })
    const run = failureOf(harness.run('Go.', { runId: 'run_1' }))
    await until(() => slow.ran.length === 3)
    const closing = harness.close()
    opened.open()
    await closing
    expect((await run).code).toBe('interrupted')
    expect(kinds(await eventsIn(log, 'run_1'))).toMatch(/tool_call_started$/)
    const children = []
    for await (const { runId, status } of log.list({ parentRunId: 'run_1' })) children.push({ runId, status })
    expect(children.map(({ status }) => status)).toEqual(['interrupted', 'interrupted'])
    for (const { runId } of children) expect(kinds(await eventsIn(log, runId))).toMatch(/tool_call_completed$/)
    const result = await harnessOf({ model: playing(plays), tools, log }).recover('run_1')
    expect([result.text, result.toolCallRecords[0]?.output]).toEqual(['Done.', expect.stringMatching(/One.*Two/)])
    expect(slow.ran.filter((each) => each === 'begins')).toHaveLength(3)
  })

  test('at the end of `timeoutMs` too', async () => {
    const log = lasting('child-timeout')
    const slow = { ...waiting('slow', never), onUnknownOutcome: 'report' } as const
    const plays = { 'Go.': [['delegate'], 'Done.'], one: [['slow'], 'One.'] }
    const tools = [delegateTool('delegate', { one: [slow] })]
    const harness = harnessOf({ model: playing(plays), tools, log })
    const run = failureOf(harness.run('Go.', { runId: 'run_1' }))
    await until(() => slow.ran.length === 1)
    await harness.close({ timeoutMs: 10 })
    expect((await run).code).toBe('interrupted')
    for await (const { status } of log.list({ parentRunId: 'run_1' })) expect(status).toBe('interrupted')
    const result = await harnessOf({ model: playing(plays), tools, log }).recover('run_1')
    expect([result.text, slow.ran]).toEqual(['Done.', ['begins']])
  })

  test('background runs are left, do not report, and continue with their parent', async () => {
    const log = lasting('background')
    const opened = gate()
    const step = waiting('step', opened.opened)
    const plays = { 'Go.': [hand('Work.'), 'I wait.', 'Done.'], 'Work.': [call('step'), 'Worked.'] }
    const options = { subagents: [worker([step])], log }
    const { harness } = played(plays, options)
    const stream = harness.stream('Go.', { runId: 'run_1' })
    const reading = eventsOf(stream)
    await until(() => step.ran.length === 1)
    const closing = harness.close()
    opened.open()
    await closing
    const events = await reading
    expect(ofKind(events, 'run_left').map(({ parentRunId }) => parentRunId)).toEqual(['run_1', null])
    expect(ofKind(events, 'background_reported')).toEqual([])
    for await (const { status } of log.list({ parentRunId: 'run_1' })) expect(status).toBe('interrupted')
    const result = await played(plays, options).harness.recover('run_1')
    expect(result.text).toBe('Done.')
    expect(reportsIn(result.transcript)).toMatchObject([{ ok: true, content: 'Worked.' }])
    expect(step.ran).toEqual(['begins', 'ends'])
  })
})

describe('`close({ runs })` decides otherwise', () => {
  test('`cancel` ends the runs of a log that outlives the process', async () => {
    const log = lasting('cancel')
    const model = new ScriptedModel().replies(() => never)
    const harness = harnessOf({ model, log })
    const run = failureOf(harness.run('Go.', { runId: 'run_1' }))
    await until(() => model.requests.length >= 1)
    await harness.close({ runs: 'cancel' })
    expect([(await run).code, await statusIn(log, 'run_1')]).toEqual(['cancelled', 'cancelled'])
  })

  test('`leave` leaves the runs of a log in memory, which another harness continues', async () => {
    const log = memoryLog()
    const model = new ScriptedModel().replies(() => never)
    const harness = harnessOf({ model, log })
    const run = failureOf(harness.run('Go.', { runId: 'run_1' }))
    await until(() => model.requests.length >= 1)
    await harness.close({ runs: 'leave' })
    expect((await run).code).toBe('interrupted')
    expect((await harnessOf({ model: new ScriptedModel().says('Done.'), log }).recover('run_1')).text).toBe('Done.')
  })

  test('`finish` waits for the runs, also beyond a default', async () => {
    const log = lasting('finish')
    const opened = gate()
    const model = new ScriptedModel().calls('look').waits(opened.opened).says('Done.')
    const harness = harnessOf({ model, tools: [tool('look')], log })
    const run = harness.run('Go.', { runId: 'run_1' })
    await until(() => model.requests.length >= 1)
    const closing = harness.close({ runs: 'finish' })
    opened.open()
    await closing
    expect([(await run).text, await statusIn(log, 'run_1')]).toEqual(['Done.', 'completed'])
  })

  test.each([
    ['leaves', lasting('finish-late'), 'interrupted'],
    ['cancels', memoryLog(), 'cancelled'],
  ])('`finish` %s the runs that are still in progress after `timeoutMs`', async (_, log, code) => {
    const model = new ScriptedModel().replies(() => never)
    const harness = harnessOf({ model, log })
    const run = failureOf(harness.run('Go.', { runId: 'run_1' }))
    await until(() => model.requests.length >= 1)
    await harness.close({ runs: 'finish', timeoutMs: 10 })
    expect((await run).code).toBe(code)
  })

  test.each([
    [{ runs: 'stop' }, '`runs`'],
    [{ timeoutMs: -1 }, '`timeoutMs`'],
    [{ timeout: 1 }, '`timeoutMs`'],
  ])('invalid options are rejected, and the harness stays open: %j', async (options, message) => {
    const harness = harnessOf({ model: new ScriptedModel().says('Done.') })
    const closing = harness.close(options as Parameters<typeof harness.close>[0])
    await expect(closing).rejects.toMatchObject({
      code: 'invalid_options',
      message: expect.stringContaining(message) as string,
    })
    expect((await harness.run('Go.')).text).toBe('Done.')
  })
})
