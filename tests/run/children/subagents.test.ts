import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { memoryLog } from 'thinharness'
import type { HarnessOptions, Hook, ToolSpec } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import type { Reply } from 'thinharness/testing'
import { subagent } from 'thinharness/tools'
import type { SubagentSpec } from 'thinharness/tools'
import { ask, playing } from './children-support.js'
import { eventsIn, logWith, payTool, stored, watchedLog } from '../resume/pause-support.js'
import { envelopeIn, handing } from './subagents-support.js'
import { eventsOf, failureOf, gate, harnessOf, ofKind, tool, until } from '../../harness/support.js'

const calls = (name: string): Reply => ({ calls: [{ name }] })
const READER: SubagentSpec = { name: 'reader', description: 'Reads.', tools: [] }

async function recordOf(options: HarnessOptions, prompt = 'Go.') {
  const stream = harnessOf(options).stream(prompt, { runId: 'run_p' })
  const events = await eventsOf(stream)
  const result = await stream.result
  return { result, events, outputs: result.toolCallRecords.map(envelopeIn) }
}

describe('the options of subagents', () => {
  test.each<[string, unknown, string]>([
    ['SU-01 an invalid name', { ...READER, name: 'a b' }, 'Expected `name` of a subagent to be 1 to 64 letters'],
    ['SU-22 the name of the default agent', { ...READER, name: 'default' }, '`default` is the name of the agent'],
    ['SU-01 a blank description', { ...READER, description: ' ' }, 'Expected `description` of subagent `reader`'],
    ['SU-01 a description of two lines', { ...READER, description: 'a\nb' }, 'to be one line'],
    [
      'SU-01 an agent without tools',
      { name: 'reader', description: 'Reads.' },
      'Expected `tools` of subagent `reader`',
    ],
    ['SU-01 an invalid `background`', { ...READER, background: 'yes' }, 'Expected `background` of subagent `reader`'],
    [
      'SU-01 an agent with tools and `fork`',
      { ...READER, history: 'fork' },
      "With `fork` subagent `reader` has its caller's tools.",
    ],
    ['what is no agent', 'reader', 'Expected the options of a subagent to be an object, got `reader`.'],
  ])('an invalid subagent is rejected: %s', (_, agent, message) => {
    for (const make of [
      () => harnessOf({ subagents: [agent as SubagentSpec] }),
      () => subagent({ agents: [agent as SubagentSpec] }),
    ]) {
      expect(make).toThrow(
        expect.objectContaining({ code: 'invalid_options', message: expect.stringContaining(message) as string }),
      )
    }
  })

  test('SU-01 a duplicate name and invalid limits are rejected', () => {
    expect(() => harnessOf({ subagents: [READER, READER] })).toThrow('Two subagents have the name `reader`')
    expect(() => subagent({ maxDepth: 0 })).toThrow('Expected `maxDepth` of `subagent` to be a whole number from 1 up')
    expect(() => subagent({ defaultAgent: false })).toThrow('Without a default agent `agents` must name some.')
  })

  test('SU-17 SU-18 the name of the tool is reserved if there are subagents, at construction and later; otherwise it is free', () => {
    const own = subagent()
    expect(() => harnessOf({ subagents: [], tools: [own] })).toThrow('Two tools have the name `subagent`')
    expect(() => harnessOf({ subagents: [] }).addTool(own)).toThrow('Two tools have the name `subagent`')
    expect(() => harnessOf({}).addTool(own)).not.toThrow()
  })

  test('SU-02 the tool is opt-in, and its arguments are a task and an agent', async () => {
    const offered = async (options: HarnessOptions) => {
      const model = new ScriptedModel().says('Done.')
      await harnessOf({ model, ...options }).run('Go.')
      return model.requests[0]?.constants.tools ?? []
    }
    expect(await offered({})).toEqual([])
    const [spec] = await offered({
      subagents: [READER, { ...READER, name: 'b', history: 'fork', tools: undefined }],
    })
    expect(Object.keys((spec?.parameters['properties'] ?? {}) as object)).toEqual(['task', 'agent'])
    expect(spec?.parameters['required']).toEqual(['task'])
    expect(spec?.description).toContain('- reader: Reads.\n- b: Reads. (a fork: it knows this conversation)')
  })
})

describe('a subagent', () => {
  test('HC-31 SU-03 SU-05 SU-11 the default agent has the tools of its caller, and its own prompt, metadata and limits', async () => {
    const seen: unknown[] = []
    const look = tool('look', (_, { metadata, runId, depth }) => void seen.push([metadata, runId !== 'run_p', depth]))
    const model = handing([{ task: 'Look.' }], { 'Look.': [calls('look'), 'Seen.'] })
    const harness = harnessOf({
      model,
      tools: [look],
      subagents: [],
      instructions: 'Mine.',
      limits: { modelRequests: 2 },
    })
    const result = await harness.run('Go.', { metadata: { conversation_id: 'c', secret: 's' } })
    expect(envelopeIn(result.toolCallRecords[0])).toEqual({
      ok: true,
      content: 'Seen.',
      metadata: {
        agent: 'default',
        tool_mode: 'inherited',
        run_id: expect.stringMatching(/^run_[0-9a-f]{32}$/) as string,
        model_requests: 2,
        structured_output: false,
      },
    })
    expect(seen).toEqual([[{ conversation_id: 'c', parent_call_id: 'call_1' }, true, 1]])
    const [, first, second] = model.requests
    expect(first?.constants.tools.map(({ name }) => name)).toEqual(['look'])
    expect(first?.constants.instructions).not.toContain('Mine.')
    // Its own budget of two: the second request is its last, though its caller has made one as well.
    expect(JSON.stringify(first?.entries)).not.toContain('final model request')
    expect(JSON.stringify(second?.entries)).toContain('final model request')
  })

  test('HC-31 SU-07 SU-09 SU-11 a named agent has its own tools, model, instructions and answer; its caller keeps its own', async () => {
    using small = new ScriptedModel({ id: 'small' }).says('{"n":3}')
    const agent: SubagentSpec = {
      ...READER,
      tools: [tool('only')],
      model: small,
      instructions: 'Count.',
      outputType: z.object({ n: z.number() }),
      outputMode: 'prompted',
    }
    const model = handing([{ task: 'How many?', agent: 'reader' }], {})
    const { outputs } = await recordOf({ model, subagents: [agent], tools: [tool('other')] })
    expect(outputs[0]).toMatchObject({
      ok: true,
      content: '{"n":3}',
      metadata: { agent: 'reader', tool_mode: 'explicit', structured_output: true },
    })
    expect(small.requests[0]?.constants.tools.map(({ name }) => name)).toEqual(['only'])
    expect(small.requests[0]?.constants.instructions).toMatch(/^Count\./)
    expect(model.requests).toHaveLength(2)
  })

  test('HC-31 SU-06 SU-12 a model that caller and subagent share is not closed after the subagent', async () => {
    let closed = 0
    const model = Object.assign(handing([{ task: 'a' }], { a: ['A.'] }), {
      close: async () => {
        closed++
      },
    })
    const { result } = await recordOf({ model, subagents: [] })
    expect([result.text, closed]).toEqual(['All done.', 0])
  })

  test('SU-15 SU-16 SB-128 an unknown agent is answered with the list of known ones, and no hook fires', async () => {
    const fired: unknown[] = []
    const hooks: Hook[] = [{ event: 'before_subagent_run', handler: () => void fired.push(1) }]
    const model = handing(
      [
        { task: 'a', agent: 'nobody' },
        { task: 'a', agent: '' },
      ],
      {},
    )
    const { outputs } = await recordOf({ model, hooks, subagents: [READER], toolRetries: 5 })
    expect(outputs[0]).toEqual({
      ok: false,
      content: 'There is no subagent `nobody`. Available: default, reader.',
      metadata: { agent: 'nobody', available: ['default', 'reader'], error_type: 'UnknownSubAgent' },
    })
    expect(outputs[1]).toMatchObject({ ok: false, metadata: { error_type: 'ValidationError' } })
    expect(fired).toEqual([])
  })

  test('SU-14 SU-19 its failure is a failed result: from a provider, a limit or a strict hook of its own', async () => {
    const hooks: Hook[] = [
      {
        event: 'user_prompt_submit',
        agents: ['strict'],
        handler: () => {
          throw new Error('No.')
        },
      },
    ]
    const agents: SubagentSpec[] = [
      { ...READER, name: 'broken', model: new ScriptedModel().fails('It is down.') },
      { ...READER, name: 'poor', limits: { modelRequests: 0 } },
      { ...READER, name: 'strict' },
    ]
    const model = handing(
      agents.map(({ name }) => ({ task: name, agent: name })),
      {},
    )
    const { outputs, result } = await recordOf({ model, hooks, subagents: agents })
    expect(outputs.map(({ ok, metadata }) => [ok, metadata])).toEqual([
      [false, { agent: 'broken', tool_mode: 'explicit', error_type: 'provider_error' }],
      [false, { agent: 'poor', tool_mode: 'explicit', error_type: 'limit_reached' }],
      [false, { agent: 'strict', tool_mode: 'explicit', error_type: 'hook_failed' }],
    ])
    expect(outputs[0]?.content).toContain('It is down.')
    expect(result.text).toBe('All done.')
  })

  test('SB-134 it starts no subagents unless allowed, and then only to the configured depth', async () => {
    const plays = (line: readonly (string | Reply)[]) => ({ a: line, b: line, c: line })
    const next = (task: string): Reply => ({ calls: [{ name: 'subagent', arguments: { task } }] })
    const flat = handing([{ task: 'a' }], plays(['A.']))
    await recordOf({ model: flat, subagents: [] })
    expect(flat.requests[1]?.constants.tools).toEqual([])
    const deep = handing([{ task: 'a' }], { a: [next('b'), 'A.'], b: ['B.'] })
    const { events } = await recordOf({ model: deep, tools: [subagent({ maxDepth: 2 })] })
    expect(ofKind(events, 'run_started').map(({ prompt }) => prompt)).toEqual(['Go.', 'a', 'b'])
    expect(deep.requests[2]?.constants.tools).toEqual([])
    const forked = new ScriptedModel().always(({ turn }) => (turn < 2 ? next('Again.') : 'Alone.'))
    const { outputs } = await recordOf({ model: forked, tools: [subagent({ defaultAgent: { history: 'fork' } })] })
    expect(outputs[0]?.content).toBe('Alone.')
    expect(JSON.stringify(forked.requests.map(({ heard }) => heard))).toContain('A subagent cannot start subagents')
  })

  test('SB-129 the number of concurrent subagents is limited; exclusive ones take turns', async () => {
    for (const [options, most] of [
      [{ maxConcurrent: 2 }, 2],
      [{ defaultAgent: { exclusive: true } }, 1],
    ] as const) {
      let [now, peak] = [0, 0]
      const work = tool('work', async () => {
        peak = Math.max(peak, ++now)
        for (let tick = 0; tick < 5; tick++) await new Promise((resolve) => setImmediate(resolve))
        now -= 1
      })
      const tasks = Array.from({ length: 6 }, (_, index) => ({ task: `t${index}` }))
      const plays = Object.fromEntries(tasks.map(({ task }) => [task, [calls('work'), `${task} done.`]]))
      const { outputs } = await recordOf({ model: handing(tasks, plays), tools: [work, subagent(options)] })
      expect(outputs.map(({ content }) => content)).toEqual(tasks.map(({ task }) => `${task} done.`))
      expect(peak).toBe(most)
    }
  })

  test('AP-24 AP-25 an approval that it needs is asked of its caller, which continues with the answer', async () => {
    const { pay, ran } = payTool()
    const plays = { a: [calls('pay'), 'Paid.'], b: [calls('ask'), 'Asked.'] }
    const harness = () =>
      harnessOf({ model: handing([{ task: 'a' }, { task: 'b' }], plays), tools: [pay, ask], subagents: [] })
    const paused = await harness().run('Go.')
    expect(paused.pending.map(({ kind, callId }) => [kind, callId])).toEqual([
      ['approval', 'call_1/1/call_1'],
      ['question', 'call_2/1/call_1'],
    ])
    const done = await harness().resume(stored(paused), [
      { callId: 'call_1/1/call_1', approved: true },
      { callId: 'call_2/1/call_1', answer: 'that' },
    ])
    expect([done.text, ran.length]).toEqual(['All done.', 1])
  })

  test('it continues after a crash at any event, and finished work is not repeated', async () => {
    const plays = { a: [calls('once'), 'A done.'] }
    const log = watchedLog()
    let runs = 0
    const once = tool('once', () => {
      runs++
    })
    const options = () => ({ model: handing([{ task: 'a' }], plays), tools: [once], subagents: [] })
    await harnessOf({ ...options(), log }).run('Go.', { runId: 'run_p' })
    for (let cut = 1; cut < log.kept.length; cut++) {
      runs = 0
      const kept = log.kept.slice(0, cut)
      const wasDone = kept.some((event) => event.kind === 'tool_call_started' && event.toolName === 'once')
      const harness = harnessOf({ ...options(), log: await logWith(kept) })
      const result = await harness.recover('run_p')
      expect([cut, result.text, runs]).toEqual([cut, 'All done.', wasDone ? 0 : 1])
    }
  })

  test('it ends with its caller, whether it runs or waits for its turn', async () => {
    const begun = gate()
    const slow = tool('slow', async (_, { signal }) => {
      begun.open()
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    })
    const model = handing([{ task: 'a' }, { task: 'a' }], { a: [calls('slow')] })
    const controller = new AbortController()
    const tools: ToolSpec[] = [slow, subagent({ maxConcurrent: 1 })]
    const run = harnessOf({ model, tools }).run('Go.', { signal: controller.signal })
    await begun.opened
    controller.abort()
    const { code, run: report } = await failureOf(run)
    expect([code, report.toolCallRecords.map(({ cancelled }) => cancelled)]).toEqual(['cancelled', [true, true]])
    expect(model.requests).toHaveLength(2)
  })
})

describe('the hooks of subagents', () => {
  test('SU-04 SU-20 they fire by name, around the hooks of the child; changes to their arguments do not reach others', async () => {
    const fired: unknown[] = []
    const note = (event: Hook['event'], more: object = {}): Hook => ({
      event,
      ...more,
      handler: (context: { event: string; runId: string }) =>
        void fired.push(`${event} ${context.runId === 'run_p' ? 'parent' : 'child'}`),
    })
    const hooks: Hook[] = [
      note('before_tool_call'),
      note('after_tool_call'),
      {
        event: 'before_subagent_run',
        agents: ['reader'],
        handler: ({ metadata, agent, prompt, callId, tools }) => {
          fired.push(['before', agent, prompt, callId, tools])
          Object.assign(metadata, { conversation_id: 'stolen' })
        },
      },
      note('run_start', { agents: ['reader'] }),
      note('run_end', { agents: ['reader'] }),
      {
        event: 'after_subagent_run',
        agents: ['reader'],
        handler: ({ result, error, usage }) => void fired.push(['after', result?.text, error, usage.modelRequests]),
      },
      { event: 'after_subagent_run', agents: ['writer'], handler: () => void fired.push('never') },
    ]
    const agents = [{ ...READER, tools: [tool('look', (_, { metadata }) => void fired.push(metadata))] }]
    const model = handing([{ task: 'a', agent: 'reader' }], { a: [calls('look'), 'A.'] })
    await harnessOf({ model, hooks, subagents: agents }).run('Go.', {
      runId: 'run_p',
      metadata: { conversation_id: 'c' },
    })
    expect(fired).toEqual([
      'before_tool_call parent',
      ['before', 'reader', 'a', 'call_1', ['look']],
      'run_start child',
      { conversation_id: 'c', parent_call_id: 'call_1' },
      'run_end child',
      ['after', 'A.', null, 2],
      'after_tool_call parent',
    ])
  })

  test('SU-21 a hook can prevent the default agent from running: no child starts', async () => {
    const fired: string[] = []
    const hooks: Hook[] = [
      { event: 'before_subagent_run', agents: ['default'], handler: () => ({ cancel: 'Not today.' }) },
      { event: 'before_subagent_run', handler: () => void fired.push('second') },
      { event: 'after_subagent_run', handler: () => void fired.push('after') },
    ]
    const log = memoryLog()
    const { outputs, events } = await recordOf({ model: handing([{ task: 'a' }], {}), hooks, subagents: [], log })
    expect(outputs[0]).toEqual({
      ok: false,
      content: 'Subagent execution blocked by hook: Not today.',
      metadata: { agent: 'default', tool_mode: 'inherited', error_type: 'SubAgentCancelled' },
    })
    expect(fired).toEqual([])
    const childId = events.find(({ runId }) => runId !== 'run_p')?.runId ?? 'none'
    expect(await eventsIn(log, childId)).toEqual([])
  })

  test('HK-24 SU-13 a failing guard prevents the child; an observer that fails closed ends the run that started it', async () => {
    const hooks: Hook[] = [
      { event: 'before_subagent_run', agents: ['reader'], handler: () => Promise.reject(new Error('Oops.')) },
    ]
    const tasks = [{ task: 'a' }, { task: 'b', agent: 'reader' }]
    const lenient = await recordOf({ model: handing(tasks, { a: ['A.'] }), hooks, subagents: [READER] })
    expect(ofKind(lenient.events, 'hook_failed').map(({ runId, message }) => [runId, message])).toEqual([
      ['run_p', 'Oops.'],
    ])
    expect(lenient.outputs.map(({ ok }) => ok)).toEqual([true, false])
    expect(lenient.outputs[1]?.content).toContain('A `before_subagent_run` hook failed: Oops.')
    expect(lenient.result.usage.hookFailures).toBe(1)
    const after: Hook[] = [
      { event: 'after_subagent_run', failMode: 'closed', handler: () => Promise.reject(new Error('Late.')) },
    ]
    const late = harnessOf({
      model: playing({ go: [['subagent']] }),
      hooks: after,
      tools: [starter],
    })
    expect((await failureOf(late.run('go'))).message).toBe('A `after_subagent_run` hook failed: Late.')
    await until(() => true)
  })
})

/** Starts a run whatever it is called with. */
const starter = tool(
  'subagent',
  async (_, { spawn }) => (await spawn({ prompt: 'x', model: new ScriptedModel().says('X.') }).result).text,
)
