import { describe, expect, test } from 'vitest'
import { Harness } from 'thinharness'
import type { Hook, Limits } from 'thinharness'
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

const NO_TOOLS = 'Tools are not available on this run: answer without them.'
const ONE_CALL_LEFT = 'One tool call remains: do not request several tools at once.'

/** A hook that records each breach. */
function listening(breaches: unknown[]): Hook {
  return {
    event: 'limit_reached',
    handler: ({ limitKind, limitValue, currentCount }) => void breaches.push({ limitKind, limitValue, currentCount }),
  }
}

describe('limits', () => {
  test('HC-05 HC-07 a limit of 0 requests fails before any request, and fires `limit_reached`', async () => {
    const breaches: unknown[] = []
    using model = new ScriptedModel()
    const harness = harnessOf({ model, limits: { modelRequests: 0 }, hooks: [listening(breaches)] })
    const error = await failureOf(harness.run('Go.'))
    expect(error).toMatchObject({
      code: 'limit_reached',
      message: 'The run reached its limit: max_model_requests=0 (0 used).',
      run: { stopReason: 'limit_reached', usage: { modelRequests: 0 }, transcript: [{ role: 'user' }] },
    })
    expect(breaches).toEqual([{ limitKind: 'model_requests', limitValue: 0, currentCount: 0 }])
  })

  test('HK-23 a limit of 1 request allows an immediate answer and blocks a continuation, a limit of 2 allows it', async () => {
    const breaches: unknown[] = []
    using model = new ScriptedModel().says('One.').calls('a').calls('a').says('Two.')
    const harness = harnessOf({ model, tools: [tool('a')], hooks: [listening(breaches)] })
    expect((await harness.run('Go.', { limits: { modelRequests: 1 } })).text).toBe('One.')
    const error = await failureOf(harness.run('Go.', { limits: { modelRequests: 1 } }))
    expect(error.message).toBe('The run reached its limit: max_model_requests=1 (1 used).')
    expect(error.run.usage).toMatchObject({ modelRequests: 1, toolCalls: 1 })
    expect((await harness.run('Go.', { limits: { modelRequests: 2 } })).text).toBe('Two.')
    expect(breaches).toEqual([{ limitKind: 'model_requests', limitValue: 1, currentCount: 1 }])
  })

  test('HC-12 HK-22 a batch over the limit of tool calls runs nothing, counts nothing and is not continued', async () => {
    const told: unknown[] = []
    const handler = (): undefined => void told.push('ran')
    const hooks: Hook[] = [
      listening(told),
      { event: 'before_tool_call', handler },
      { event: 'run_end', handler: ({ stopReason }) => void told.push(stopReason) },
    ]
    using model = new ScriptedModel().calls('a').callsAll([{ name: 'a' }, { name: 'a' }])
    const harness = harnessOf({ model, tools: [tool('a')], limits: { toolCalls: 2 }, hooks })
    const stream = harness.stream('Go.')
    const events = await eventsOf(stream)
    const error = await failureOf(stream.result)
    expect(error.message).toBe('The run reached its limit: max_tool_calls=2 (3 calls would be needed).')
    expect(error.run.usage).toMatchObject({ modelRequests: 2, toolCalls: 1 })
    expect(told).toEqual(['ran', { limitKind: 'tool_calls', limitValue: 2, currentCount: 3 }, 'limit_reached'])
    expect(ofKind(events, 'tool_call_started').map(({ callId }) => callId)).toEqual(['call_1'])
    // The one call that was left is told with the first continuation, and nothing with the batch that fails.
    expect(ofKind(events, 'limit_warning').map(({ content }) => content)).toEqual([ONE_CALL_LEFT])
  })

  test('HC-05 limits of tokens and of time end a run too', async () => {
    using model = new ScriptedModel()
      .calls('a', {}, { usage: { inputTokens: 60 } })
      .calls('a', {}, { usage: { outputTokens: 30 } })
      .waits(new Promise(() => undefined))
      .says('Never.')
    const breaches: unknown[] = []
    const harness = harnessOf({ model, tools: [tool('a')], hooks: [listening(breaches)] })
    const messages: string[] = []
    for (const limits of [{ inputTokens: 50 }, { outputTokens: 30 }, { timeMs: 30 }] satisfies Limits[]) {
      const error = await failureOf(harness.run('Go.', { limits }))
      expect(error.run.stopReason).toBe('limit_reached')
      messages.push(error.message)
    }
    expect(messages).toEqual([
      'The run reached its limit: input_tokens=50 (60 used).',
      'The run reached its limit: output_tokens=30 (30 used).',
      'The run reached its limit: time_ms=30 (30 used).',
    ])
    expect(breaches).toEqual([
      { limitKind: 'input_tokens', limitValue: 50, currentCount: 60 },
      { limitKind: 'output_tokens', limitValue: 30, currentCount: 30 },
      { limitKind: 'time_ms', limitValue: 30, currentCount: 30 },
    ])
  })

  test.each<[string, unknown, string]>([
    [
      'a fraction',
      { modelRequests: 1.5 },
      'Expected `limits.modelRequests` of OWNER to be a whole number from 0 up or `null`, got `1.5`.',
    ],
    [
      'a negative',
      { toolCalls: -1 },
      'Expected `limits.toolCalls` of OWNER to be a whole number from 0 up or `null`, got `-1`.',
    ],
    [
      'a text',
      { timeMs: '5' },
      'Expected `limits.timeMs` of OWNER to be a whole number from 0 to 2147483647 or `null`, got the string `5`.',
    ],
    [
      'no number',
      { inputTokens: NaN },
      'Expected `limits.inputTokens` of OWNER to be a whole number from 0 up or `null`, got `NaN`.',
    ],
    [
      'a time that no timer knows',
      { timeMs: 2 ** 31 },
      'Expected `limits.timeMs` of OWNER to be a whole number from 0 to 2147483647 or `null`, got `2147483648`.',
    ],
    [
      'an unknown name',
      { modelRequest: 1 },
      'Unknown option of OWNER: `limits.modelRequest`. Did you mean `modelRequests`?',
    ],
  ])('HC-05 an invalid limit is rejected, at construction and by a run at once: %s', (_name, limits, message) => {
    const refusal = (owner: string): Error =>
      expect.objectContaining({ code: 'invalid_options', message: message.replace('OWNER', owner) }) as Error
    expect(() => new Harness({ limits: limits as Limits })).toThrow(refusal('`Harness`'))
    const harness = harnessOf({ model: new ScriptedModel() })
    expect(() => harness.stream('Go.', { limits: limits as Limits })).toThrow(refusal('a run'))
  })

  test('a limit that a run sets to null is lifted, and one that is undefined stays', async () => {
    using model = new ScriptedModel().calls('a').says('Done.').calls('a')
    const harness = harnessOf({
      model,
      tools: [tool('a')],
      limits: { toolCalls: 0, modelRequests: undefined },
    })
    expect((await harness.run('Go.', { limits: { toolCalls: null } })).text).toBe('Done.')
    const error = await failureOf(harness.run('Go.', { limits: { toolCalls: undefined } as unknown as Limits }))
    expect(error.code).toBe('limit_reached')
  })
})

describe('notices', () => {
  test('HC-06 HC-07 with a limit of 1 the first request carries the final-request notice, and no hook fires', async () => {
    const breaches: unknown[] = []
    using model = new ScriptedModel().says('Done.')
    const harness = harnessOf({ model, limits: { modelRequests: 1 }, hooks: [listening(breaches)] })
    const events = await eventsOf(harness.stream('Go.'))
    expect(model.heard).toEqual([{ kind: 'start', prompt: `Go.\n\n${limitNotices(LAST_REQUEST)}` }])
    expect(ofKind(events, 'limit_warning')).toMatchObject([
      { limitKind: 'model_requests', remaining: 1, content: LAST_REQUEST },
    ])
    expect(breaches).toEqual([])
  })

  test('HC-08 notices cannot be switched off', () => {
    expect(() => new Harness({ notices: false } as never)).toThrow('Unknown option of `Harness`: `notices`.')
  })

  test('HC-09 HC-11 a continuation carries its model notice, then its tool notice, after the first request carried another', async () => {
    using model = new ScriptedModel().calls('a').says('Done.')
    await harnessOf({ model, tools: [tool('a')], limits: { modelRequests: 2, toolCalls: 1 } }).run('Go.')
    expect(model.heard).toEqual([
      { kind: 'start', prompt: `Go.\n\n${limitNotices(ONE_CALL_LEFT)}` },
      {
        kind: 'tool_outputs',
        outputs: [output('call_1', 'ok')],
        prompt: limitNotices(LAST_REQUEST, NO_CALLS_LEFT),
      },
    ])
  })

  test('HC-10 a limit of 0 tool calls sends the tools-unavailable notice with the first request', async () => {
    using model = new ScriptedModel().says('Done.')
    await harnessOf({ model, tools: [tool('a')], limits: { toolCalls: 0 } }).run('Go.')
    expect(model.heard).toEqual([{ kind: 'start', prompt: `Go.\n\n${limitNotices(NO_TOOLS)}` }])
  })

  test.each<[Limits, string[]]>([
    [{ modelRequests: 1, toolCalls: 0 }, [LAST_REQUEST, NO_TOOLS]],
    [{ modelRequests: 1, toolCalls: 1 }, [LAST_REQUEST, ONE_CALL_LEFT]],
    [{ modelRequests: 2, toolCalls: 2 }, []],
    [{ modelRequests: null, toolCalls: 1 }, [ONE_CALL_LEFT]],
  ])('HC-11 the first request carries its notices, model before tool: %j', async (limits, expected) => {
    using model = new ScriptedModel().says('Done.')
    await harnessOf({ model, tools: [tool('a')], limits }).run('Go.')
    expect(model.heard).toEqual([
      { kind: 'start', prompt: ['Go.', ...(expected.length > 0 ? [limitNotices(...expected)] : [])].join('\n\n') },
    ])
  })

  test('HC-09 a notice follows the context of hooks, in a part of its own after an image, and stays in the transcript', async () => {
    const hook: Hook = { event: 'user_prompt_submit', handler: () => ({ context: 'Today is Monday.' }) }
    using model = new ScriptedModel().says('Done.').says('Done.')
    const harness = harnessOf({ model, limits: { modelRequests: 1 }, hooks: [hook] })
    const result = await harness.run('Go.')
    const text = `Go.\n\n<hook_context>\nToday is Monday.\n</hook_context>\n\n${limitNotices(LAST_REQUEST)}`
    expect(result.transcript[0]).toMatchObject({ role: 'user', content: [{ type: 'text', text }] })
    const image = { type: 'image', data: 'AAAA', mediaType: 'image/png' } as const
    const seen = await harness.run([{ type: 'text', text: 'What is this?' }, image])
    expect(seen.transcript[0]).toMatchObject({
      content: [
        { type: 'text', text: 'What is this?' },
        image,
        { type: 'text', text: `<hook_context>\nToday is Monday.\n</hook_context>\n\n${limitNotices(LAST_REQUEST)}` },
      ],
    })
  })

  test('HC-06 a notice counts as sent only once its request has succeeded', async () => {
    using model = new ScriptedModel().fails('Down.')
    const error = await failureOf(harnessOf({ model, limits: { modelRequests: 1 } }).run('Go.'))
    expect(error.run.resumeState).toMatchObject({ told: [] })
    using answering = new ScriptedModel().says('Done.')
    const result = await harnessOf({ model: answering, limits: { modelRequests: 1 } }).run('Go.')
    expect(result.resumeState).toMatchObject({ told: ['limit_warning:model_requests:1'] })
  })
})
