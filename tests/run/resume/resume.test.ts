import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { memoryLog } from 'thinharness'
import type { Hook, HookContext, Model, ResumeState } from 'thinharness'
import { anthropic, openai, openrouter } from 'thinharness/providers'
import { ScriptedModel, scriptedProvider } from 'thinharness/testing'
import type { ScriptedProvider } from 'thinharness/testing'
import { eventsIn, jsonCopy, payTool, reordered, stored } from './pause-support.js'
import { eventsOf, failureOf, harnessOf, ofKind, tool } from '../../harness/support.js'

type Api = 'openai' | 'anthropic' | 'openrouter'
const APIS: readonly Api[] = ['openai', 'anthropic', 'openrouter']
const MODELS: Readonly<Record<Api, (provider: ScriptedProvider) => Model>> = {
  openai: ({ url }) => openai('gpt-5.5', { apiKey: 'any', baseUrl: url.responses, chain: true }),
  anthropic: ({ url }) => anthropic('claude-sonnet-5', { apiKey: 'any', baseUrl: url.messages }),
  openrouter: ({ url }) => openrouter('x/y', { apiKey: 'any', baseUrl: url.openrouter }),
}

/** A body with nothing but the ids of calls and of results in it, in order, and whether a response id was sent. */
function idsOf(body: unknown): { readonly calls: string[]; readonly results: string[]; readonly chained: boolean } {
  const calls: string[] = []
  const results: string[] = []
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    const { type, role, id, call_id, tool_use_id, tool_call_id, tool_calls } = value as Record<string, unknown>
    if (type === 'function_call') calls.push(String(call_id))
    if (type === 'tool_use') calls.push(String(id))
    if (Array.isArray(tool_calls)) calls.push(...tool_calls.map((call: { id: string }) => call.id))
    if (type === 'function_call_output') results.push(String(call_id))
    if (type === 'tool_result') results.push(String(tool_use_id))
    if (role === 'tool') results.push(String(tool_call_id))
    Object.values(value).forEach(visit)
  }
  visit(body)
  const { previous_response_id } = body as { previous_response_id?: unknown }
  return { calls, results, chained: previous_response_id !== undefined }
}

describe('a resumed run with a provider', () => {
  test.each(APIS)(
    'AP-14 AP-15 AP-16 a paused run is resumed elsewhere with its whole conversation, each result under the id of its call: %s',
    async (api) => {
      await using provider = await scriptedProvider()
      provider.callsAll([{ name: 'pay' }, { name: 'look' }], { text: 'Paying.' }).says('Paid.')
      const { pay } = payTool()
      const tools = [pay, tool('look')]
      const paused = await harnessOf({ model: MODELS[api](provider), tools }).run('Pay.')
      const callId = paused.pending[0]!.callId
      const state = reordered(stored(paused))
      const result = await harnessOf({ model: MODELS[api](provider), tools }).resume(state, [
        { callId, approved: true },
      ])
      expect(result.text).toBe('Paid.')
      const { calls, results, chained } = idsOf(provider.requests[1]?.body)
      expect(calls).toHaveLength(2)
      expect(results).toEqual(calls)
      expect(chained).toBe(false)
      expect(JSON.stringify(provider.requests[1]?.body)).toContain('Paying.')
    },
  )

  test.each(APIS)(
    'RS-01 RS-02 RS-03 RS-05 RS-06 a new prompt follows the whole conversation, under the current instructions: %s',
    async (api) => {
      await using provider = await scriptedProvider()
      provider
        .callsAll([{ name: 'a' }, { name: 'b' }])
        .says('Done.')
        .calls('a')
        .says('More.')
      const tools = [tool('a'), tool('b')]
      const run = (instructions: string) => harnessOf({ model: MODELS[api](provider), tools, instructions })
      const state = stored(await run('Old words.').run('First.'))
      await run('New words.').run('Second.', { history: state })
      const [, , body, next] = provider.requests.map((request) => request.body)
      const sent = JSON.stringify(body)
      for (const text of ['First.', 'Done.', 'Second.', 'New words.']) expect(sent).toContain(text)
      expect(sent).not.toContain('Old words.')
      const { calls, results, chained } = idsOf(body)
      expect([calls.length, results, chained]).toEqual([2, calls, false])
      expect(idsOf(next).chained).toBe(api === 'openai')
    },
  )

  test.each(APIS.flatMap((from) => APIS.filter((to) => to !== from).map((to) => [from, to] as const)))(
    'RS-04 RS-07 a waiting run is resumed with another provider, with matching ids of calls and results: %s, %s',
    async (from, to) => {
      await using provider = await scriptedProvider()
      provider.callsAll([{ name: 'pay' }, { name: 'pay' }]).says('Paid.')
      const { pay, ran } = payTool()
      const paused = await harnessOf({ model: MODELS[from](provider), tools: [pay] }).run('Pay.')
      const answers = paused.pending.map(({ callId }) => ({ callId, approved: true }))
      await harnessOf({ model: MODELS[to](provider), tools: [pay] }).resume(stored(paused), answers)
      const { calls, results } = idsOf(provider.requests[1]?.body)
      expect([ran.length, calls.length, results]).toEqual([2, 2, calls])
    },
  )
})

async function endedState(): Promise<ResumeState> {
  const model = new ScriptedModel().calls('look').says('Seen.')
  return stored(await harnessOf({ model, tools: [tool('look')] }).run('Look.'))
}

type Doc = Record<string, unknown> & { transcript: Record<string, unknown>[] }

describe('a state passed as `history`', () => {
  test.each<[string, (state: Doc) => unknown, RegExp]>([
    ['RS-07 a state of another version', (state) => ({ ...state, version: 99 }), /version `99`/],
    ['RS-07 a state without a version', (state) => ({ ...state, version: undefined }), /it has no `version`/],
    ['RS-07 a state with an unknown key', (state) => ({ ...state, extra: 1 }), /Unknown field of the state: `extra`/],
    ['RS-07 a state of an old kind', (state) => ({ ...state, kind: 'transcript' }), /`kind` is not `run_state`/],
    ['RS-08 a string', () => 'state', /expected the `resumeState` of a result/],
    ['RS-08 a list of something else', () => [5], /`\[0\]` of the entries to be an object/],
    ['RS-08 a state without a kind', (state) => ({ ...state, kind: undefined }), /`kind` is not `run_state`/],
    [
      'RS-08 a state without a conversation',
      (state) => ({ ...state, transcript: undefined }),
      /`transcript` of the state to be a list, got nothing/,
    ],
    [
      'RS-08 a state with an invalid conversation',
      (state) => ({ ...state, transcript: {} }),
      /`transcript` of the state to be a list/,
    ],
    [
      'RS-08 a state with an invalid entry',
      (state) => ({ ...state, transcript: [5] }),
      /`transcript\[0\]` of the state to be an object/,
    ],
    [
      'RS-08 a state with an entry of an unknown role',
      (state) => ({ ...state, transcript: [{ ...state.transcript[0], role: 'system' }] }),
      /`transcript\[0\]\.role` of the state to be one of/,
    ],
    [
      'RS-08 a state with an extra key in an entry',
      (state) => ({ ...state, transcript: [{ ...state.transcript[0], mood: 'good' }] }),
      /Unknown field of the state: `transcript\[0\]\.mood`/,
    ],
    [
      'RS-08 a state with an invalid tool call',
      (state) => {
        const [first, second, ...rest] = state.transcript
        return { ...state, transcript: [first, { ...second, parts: [{ type: 'tool_call', callId: 1 }] }, ...rest] }
      },
      /`transcript\[1\]\.parts\[0\]/,
    ],
    ['RS-08 RS-23 a state that is not JSON', (state) => ({ ...state, metadata: { n: 1n } }), /not plain JSON/],
    [
      'RS-08 a circular state',
      (state) => {
        const round: Record<string, unknown> = { ...state }
        return Object.assign(round, { metadata: round })
      },
      /not plain JSON/,
    ],
  ])('RS-22 an invalid state is rejected before any hook and before any request: %s', async (_, change, problem) => {
    const model = new ScriptedModel()
    const hooks = (['run_start', 'user_prompt_submit'] as const).map((event): Hook => ({
      event,
      handler: () => expect.fail('No hook may be asked.'),
    }))
    const state = change((await endedState()) as unknown as Doc) as ResumeState
    const harness = harnessOf({ model, hooks })
    expect(() => harness.stream('More.', { history: state })).toThrow(/^history: /)
    const failed = await failureOf(harness.run('More.', { history: state }))
    expect(failed.code).toBe('invalid_state')
    expect(failed.message).toMatch(/^history: /)
    expect(failed.message).toMatch(problem)
    expect(model.requests).toEqual([])
  })

  test('RS-10 RS-11 a run that was answered by `final_result` can be continued, and may be answered so again', async () => {
    using model = new ScriptedModel().calls('final_result', { n: 1 }).calls('final_result', { n: 2 })
    const harness = harnessOf({ model, outputType: z.object({ n: z.number() }), outputMode: 'tool' })
    const first = await harness.run('One.')
    const second = await harness.run('Two.', { history: stored(first) })
    expect([first.output, second.output]).toEqual([{ n: 1 }, { n: 2 }])
    expect(second.resumeState).not.toBeNull()
  })

  test('RS-12 RS-13 its new prompt is followed by the context of hooks, then by the notices', async () => {
    using model = new ScriptedModel().says('More.')
    const hooks: Hook[] = [{ event: 'user_prompt_submit', handler: () => ({ context: 'It is Monday.' }) }]
    const harness = harnessOf({ model, hooks, limits: { modelRequests: 1 } })
    await harness.run('Go on.', { history: await endedState() })
    const [heard] = model.heard
    const text = heard?.kind === 'message' ? String(heard.prompt) : ''
    const places = ['Go on.', 'It is Monday.', 'final model request'].map((part) => text.indexOf(part))
    expect(places).toEqual([...places].sort((a, b) => a - b))
    expect(places).not.toContain(-1)
  })

  test('RS-20 it is a copy, in both directions', async () => {
    const model = new ScriptedModel().says('One.').says('Two.')
    const harness = harnessOf({ model })
    const first = await harness.run('Go.')
    const state = first.resumeState as unknown as Doc
    const given = jsonCopy(state)
    state.transcript.length = 0
    expect(first.transcript).toHaveLength(2)
    const kept = jsonCopy(given)
    const second = await harness.run('More.', { history: given as unknown as ResumeState })
    expect(given).toEqual(kept)
    given.transcript.length = 0
    expect(second.transcript).toHaveLength(4)
  })

  test('RS-21 it starts any number of branches, in any harness', async () => {
    const state = await endedState()
    const texts: string[] = []
    for (const word of ['One.', 'Two.']) {
      const model = new ScriptedModel().says(word)
      const result = await harnessOf({ model }).run('More.', { history: state })
      texts.push(result.text)
      expect(result.transcript).toHaveLength(6)
    }
    expect(texts).toEqual(['One.', 'Two.'])
  })

  test('RS-26 a `run_end` hook receives it, for a pause too: stored, it can be resumed', async () => {
    const { pay, ran } = payTool()
    const states: ResumeState[] = []
    const hooks: Hook[] = [
      {
        event: 'run_end',
        handler: ({ result }: HookContext<'run_end'>) => void states.push(jsonCopy(result!.resumeState!)),
      },
      { event: 'run_end', handler: () => Promise.reject(new Error('Broken.')) },
    ]
    const model = new ScriptedModel().calls('pay').says('Paid.').says('More.')
    const harness = harnessOf({ model, tools: [pay], hooks })
    const paused = await harness.run('Pay.')
    expect(paused.pending).toHaveLength(1)
    const fromHook = await harness.resume(states[0]!, [{ callId: 'call_1', approved: true }])
    expect([fromHook.text, ran.length]).toEqual(['Paid.', 1])
    await expect(harness.resume(stored(paused), [{ callId: 'call_1', approved: true }])).rejects.toThrow(/stale/)
    expect((await harness.run('And?', { history: states[1]! })).text).toBe('More.')
  })
})

describe('a state given to `resume`', () => {
  const YES = [{ callId: 'call_1', approved: true }] as const

  async function paused() {
    const { pay, ran } = payTool()
    const log = memoryLog()
    const model = () => new ScriptedModel().always(({ turn }) => (turn === 0 ? { calls: [{ name: 'pay' }] } : 'Paid.'))
    const harness = () => harnessOf({ model: model(), tools: [pay], log })
    return { ran, log, harness, state: stored(await harness().run('Pay.', { runId: 'run_p' })) }
  }

  test('twice is stale the second time, in the same harness and in another with the same log', async () => {
    const { ran, log, harness, state } = await paused()
    await harness().resume(state, YES)
    const events = await eventsIn(log, 'run_p')
    for (let round = 0; round < 2; round++) {
      const failed = await failureOf(harness().resume(state, YES))
      expect(failed).toMatchObject({ code: 'invalid_state', message: expect.stringContaining('stale') as string })
    }
    expect(ran).toHaveLength(1)
    expect(await eventsIn(log, 'run_p')).toEqual(events)
  })

  test.each(['resumed', 'cancelled'] as const)(
    'of a run that was %s is stale even if the default log has forgotten the run',
    async (how) => {
      const { pay, ran } = payTool()
      const model = new ScriptedModel().calls('pay')
      if (how === 'resumed') model.says('Paid.')
      for (let count = 0; count < 40; count++) model.says('Other.')
      const harness = harnessOf({ model, tools: [pay] })
      const state = jsonCopy(stored(await harness.run('Pay.', { runId: 'run_1' })))
      if (how === 'resumed') await harness.resume(state, [{ callId: 'call_1', approved: true }])
      else await harness.cancel('run_1')
      for (let count = 0; count < 40; count++) await harness.run('Other.')
      expect((await failureOf(harness.recover('run_1'))).code).toBe('run_not_found')
      const again = await failureOf(harness.resume(state, [{ callId: 'call_1', approved: true }]))
      expect([again.code, again.message]).toEqual(['invalid_state', expect.stringContaining('the state is stale')])
      expect(ran).toHaveLength(how === 'resumed' ? 1 : 0)
    },
  )

  test('twice at once: one continues, the other is rejected', async () => {
    const { ran, harness, state } = await paused()
    const ends = await Promise.allSettled([harness().resume(state, YES), harness().resume(state, YES)])
    expect(ends.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    const refused = ends.find((end) => end.status === 'rejected')
    expect(['run_owned', 'invalid_state']).toContain((refused?.reason as { code: string }).code)
    expect(ran).toHaveLength(1)
  })

  test('continues in a log that has never seen the run, which then holds everything for recovery', async () => {
    const { state } = await paused()
    const { pay } = payTool()
    const log = memoryLog()
    const stream = harnessOf({ model: new ScriptedModel().says('Paid.'), tools: [pay], log }).streamResume(state, YES)
    const [started] = ofKind(await eventsOf(stream), 'run_started')
    expect(started?.seq).toBe(Number(state['seq']) + 1)
    expect(started?.state).toMatchObject({ kind: 'run_state', runId: 'run_p' })
    const result = await stream.result
    const recovered = await harnessOf({ model: new ScriptedModel(), tools: [pay], log }).recover('run_p')
    expect(recovered.transcript).toEqual(jsonCopy(result.transcript))
    expect(recovered).toMatchObject({ text: 'Paid.', usage: result.usage })
  })

  test('is not modified', async () => {
    const { harness, state } = await paused()
    const before = jsonCopy(state)
    await harness().resume(state, YES)
    expect(state).toEqual(before)
  })
})
