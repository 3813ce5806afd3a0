import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { HarnessOptions, Limits } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import {
  eventsOf,
  failureOf,
  harnessOf,
  LAST_REQUEST,
  limitNotices,
  NO_CALLS_LEFT,
  ofKind,
  output,
  tool,
} from '../../harness/support.js'

function answering(limits: Limits, options: HarnessOptions): ReturnType<typeof harnessOf> {
  return harnessOf({ onLimit: 'answer', limits, ...options })
}

const REFUSED = (left: number): string =>
  `This call was not run: 2 calls were asked for, and ${left} of 2 remain. Answer now with what you have, without tools.`

describe('a limit and its `onLimit`', () => {
  test('can be set for one run, even of a child; the harness keeps its own', async () => {
    using model = new ScriptedModel().calls('a').says('What I have.').calls('a')
    const harness = harnessOf({ model, tools: [tool('a')], limits: { modelRequests: 1 } })
    const result = await harness.run('Go.', { limits: { modelRequests: 2 }, onLimit: 'answer' })
    expect([result.text, model.requests.map(({ toolChoice }) => toolChoice)]).toEqual([
      'What I have.',
      [undefined, 'none'],
    ])
    expect((await failureOf(harness.run('Go.'))).code).toBe('limit_reached')
    expect(() => harness.stream('Go.', { onLimit: 'stop' as never })).toThrow(
      'Expected `onLimit` of a run to be one of',
    )
    using child = new ScriptedModel().calls('b').says('Half of it.')
    using parent = new ScriptedModel().calls('subagent', { task: 'Work.', agent: 'worker' }).says('Done.')
    const worker = { name: 'worker', description: 'Works.', model: child, tools: [tool('b')] }
    const subagents = [{ ...worker, limits: { modelRequests: 2 }, onLimit: 'answer' } as const]
    const { toolCallRecords } = await harnessOf({ model: parent, subagents }).run('Go.')
    expect(toolCallRecords[0]?.output).toContain('Half of it.')
  })
})

describe("limits that ask for an answer (`onLimit: 'answer'`)", () => {
  test('a batch over the limit of tool calls is answered call by call, none runs, and the model answers without tools', async () => {
    const ran: string[] = []
    using model = new ScriptedModel()
      .calls('a')
      .callsAll([{ name: 'a' }, { name: 'a' }])
      .says('What I have.')
    const tools = [tool('a', () => void ran.push('a'))]
    const stream = answering({ toolCalls: 2 }, { model, tools }).stream('Go.')
    const events = await eventsOf(stream)
    const result = await stream.result
    expect([result.text, result.stopReason, ran]).toEqual(['What I have.', 'end_turn', ['a']])
    expect(result.usage).toMatchObject({ modelRequests: 3, toolCalls: 1 })
    const refusal = { ok: false }
    expect(model.heard[2]).toMatchObject({
      kind: 'tool_outputs',
      outputs: [output('call_2', REFUSED(1), refusal), output('call_3', REFUSED(1), refusal)],
      prompt: limitNotices(NO_CALLS_LEFT),
    })
    expect(model.requests.map(({ toolChoice }) => toolChoice)).toEqual([undefined, undefined, 'none'])
    expect(ofKind(events, 'model_request_started').map(({ closing }) => closing)).toEqual([
      undefined,
      undefined,
      { kind: 'tool_calls', limit: 2, count: 3 },
    ])
    expect(ofKind(events, 'tool_call_started')).toHaveLength(1)
  })

  test('the last request has no tools', async () => {
    using model = new ScriptedModel().calls('a').says('Done.')
    await answering({ modelRequests: 2 }, { model, tools: [tool('a')] }).run('Go.')
    expect(model.requests.map(({ toolChoice }) => toolChoice)).toEqual([undefined, 'none'])
    expect(model.heard[1]).toMatchObject({ prompt: limitNotices(LAST_REQUEST) })
  })

  test('calls that arrive anyway end the run, and do not run', async () => {
    const ran: string[] = []
    using model = new ScriptedModel().calls('a')
    const error = await failureOf(
      answering({ modelRequests: 1 }, { model, tools: [tool('a', () => void ran.push('a'))] }).run('Go.'),
    )
    expect(error.message).toBe('The run reached its limit: max_model_requests=1 (1 used).')
    expect(ran).toEqual([])
  })

  test('a token limit may be exceeded by that one request', async () => {
    using model = new ScriptedModel()
      .calls('a', {}, { usage: { inputTokens: 4000 } })
      .calls('a', {}, { usage: { inputTokens: 7000 } })
      .says('What I have.', { usage: { inputTokens: 9000 } })
    const result = await answering({ inputTokens: 10_000 }, { model, tools: [tool('a')] }).run('Go.')
    expect([result.text, result.usage.inputTokens]).toEqual(['What I have.', 20_000])
    expect(model.requests.map(({ toolChoice }) => toolChoice)).toEqual([undefined, undefined, 'none'])
    const text = 'This run is at the end of its input tokens. Answer now with what you have, without tools.'
    expect(model.heard[2]).toMatchObject({ prompt: limitNotices(text) })
  })

  test('a token limit is exceeded by no second request', async () => {
    using model = new ScriptedModel().calls('a', {}, { usage: { inputTokens: 11_000 } }).calls('a')
    const error = await failureOf(answering({ inputTokens: 10_000 }, { model, tools: [tool('a')] }).run('Go.'))
    expect(error.message).toBe('The run reached its limit: input_tokens=10000 (11010 used).')
    expect(error.run.usage).toMatchObject({ modelRequests: 2, toolCalls: 2 })
  })

  test('nothing is forced if the answer is a call, and no tool choice is sent without tools', async () => {
    using model = new ScriptedModel().calls('final_result', { n: 1 }).says('Done.')
    const outputType = z.object({ n: z.number() })
    const limits = { modelRequests: 1 }
    const typed = harnessOf({ model, outputType, outputMode: 'tool', limits, onLimit: 'answer' })
    expect((await typed.run('Go.')).output).toEqual({ n: 1 })
    expect((await answering(limits, { model }).run('Go.')).text).toBe('Done.')
    expect(model.requests.map(({ toolChoice }) => toolChoice)).toEqual([undefined, undefined])
  })

  test('without it the run ends', async () => {
    using model = new ScriptedModel().calls('a').calls('a').calls('a')
    const error = await failureOf(harnessOf({ model, tools: [tool('a')], limits: { modelRequests: 3 } }).run('Go.'))
    expect([error.code, error.run.usage.modelRequests]).toEqual(['limit_reached', 3])
  })
})

describe('notices of budgets that are nearly used up', () => {
  test.each<[string, Limits, { inputTokens?: number; outputTokens?: number }, string | undefined]>([
    [
      'a tenth of the input is left',
      { inputTokens: 1000 },
      { inputTokens: 900 },
      'About 100 input tokens of 1000 input tokens remain for this run: come to an answer.',
    ],
    [
      'another request as long as the last would be too long',
      { inputTokens: 1000 },
      { inputTokens: 500 },
      'About 500 input tokens of 1000 input tokens remain for this run: come to an answer.',
    ],
    ['there is room', { inputTokens: 1000, outputTokens: 1000 }, { inputTokens: 300, outputTokens: 800 }, undefined],
    [
      'a tenth of the output is left',
      { outputTokens: 100 },
      { outputTokens: 95 },
      'About 5 output tokens of 100 output tokens remain for this run: come to an answer.',
    ],
  ])('are sent when %s, once', async (_name, limits, usage, content) => {
    using model = new ScriptedModel()
      .calls('a', {}, { usage })
      .calls('a', {}, { usage: { inputTokens: 0, outputTokens: 0 } })
      .says('Done.')
    const events = await eventsOf(harnessOf({ model, tools: [tool('a')], limits }).stream('Go.'))
    expect(ofKind(events, 'limit_warning').map((event) => event.content)).toEqual(
      content === undefined ? [] : [content],
    )
  })

  test('are sent for money', async () => {
    const prices = { unknown: { inputPerMillion: 0, outputPerMillion: 1 } }
    using model = new ScriptedModel().calls('wait', {}, { usage: { outputTokens: 950_000 } }).says('Done.')
    const limits = { costUsd: 1 }
    const settings = { maxOutputTokens: 950_000 }
    const events = await eventsOf(harnessOf({ model, tools: [tool('wait')], limits, prices, settings }).stream('Go.'))
    expect(ofKind(events, 'limit_warning').map(({ limitKind, content }) => [limitKind, content])).toEqual([
      ['cost_usd', 'About $0.05 of $1.00 remain for this run: come to an answer.'],
    ])
  })
})
