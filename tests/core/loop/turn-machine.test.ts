import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { memoryLog, ModelRetry } from 'thinharness'
import type { RunLog } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { stored } from '../../run/resume/pause-support.js'
import { eventsOf, failureOf, harnessOf, kinds, ofKind, output, tool } from '../../harness/support.js'

const answer = z.object({ answer: z.string() })

/** A log that writes a diary of what is kept, to be compared with what happens. */
/** Its appends take several turns of the event loop: nothing that waits for one can run before it has ended. */
function diaryLog(diary: string[]): RunLog {
  const log = memoryLog()
  return {
    async append(ref, events) {
      for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
      await log.append(ref, events)
      diary.push(...events.map(({ kind }) => `kept ${kind}`))
    },
    read: (ref, options) => log.read(ref, options),
  }
}

describe('the turn machine', () => {
  test('TM-01 a final reply ends the run and is recorded once', async () => {
    using model = new ScriptedModel().says('Done.')
    const result = await harnessOf({ model }).run('Go.')
    expect(result).toMatchObject({ text: 'Done.', output: 'Done.', stopReason: 'end_turn', pending: [] })
    expect(result.responses).toHaveLength(1)
    expect(result.transcript.map(({ role }) => role)).toEqual(['user', 'assistant'])
  })

  test('TM-02 158 each effect follows the stored event that announces it, and each result is stored before the next request', async () => {
    const diary: string[] = []
    const look = tool('look', () => void diary.push('the tool runs'))
    using model = new ScriptedModel()
      .replies(() => {
        diary.push('the model is asked')
        return { calls: [{ name: 'look' }] }
      })
      .replies(() => {
        diary.push('the model is asked')
        return 'Done.'
      })
    await harnessOf({ model, tools: [look], log: diaryLog(diary) }).run('Go.')
    expect(diary).toEqual([
      'kept run_started',
      'kept model_request_started',
      'the model is asked',
      'kept model_message',
      'kept tool_call_started',
      'the tool runs',
      'kept tool_call_completed',
      'kept model_request_started',
      'the model is asked',
      'kept model_message',
      'kept run_completed',
    ])
  })

  test('TM-02 a batch is checked against the limit, run, recorded, checked for retries and then answered, in that order', async () => {
    const picky = tool('picky', () => Promise.reject(new ModelRetry('Again.')))
    using model = new ScriptedModel().calls('picky').says('Done.')
    const stream = harnessOf({ model, tools: [picky], limits: { toolCalls: 1 } }).stream('Go.', { deltas: false })
    expect(kinds(await eventsOf(stream))).toBe(
      [
        'run_started model_request_started limit_warning model_message tool_call_started tool_call_completed',
        'model_retry model_request_started limit_warning model_message run_completed',
      ].join(' '),
    )
  })

  test('TM-04 a reply that does not fit is reported and corrected by a message, within the limit', async () => {
    using model = new ScriptedModel().says('one').says('{"answer":"one"}')
    const stream = harnessOf({ model, outputType: answer, outputMode: 'prompted' }).stream('Go.', { deltas: false })
    const events = await eventsOf(stream)
    expect(kinds(events)).toBe(
      'run_started model_request_started model_message model_retry model_request_started model_message run_completed',
    )
    expect(ofKind(events, 'model_request_started').map(({ requestKind }) => requestKind)).toEqual([
      'start',
      'correction',
    ])
    expect(ofKind(events, 'model_retry')).toMatchObject([{ retryKind: 'structured_output', callId: null }])
  })

  test('TM-05 a reply that is not an answer fails the run once it is recorded', async () => {
    using model = new ScriptedModel().says('Once upon a', { finishReason: 'length', nativeFinishReason: 'max_tokens' })
    const error = await failureOf(harnessOf({ model }).run('Go.'))
    expect(error).toMatchObject({
      code: 'unexpected_model_behavior',
      message: 'The reply was cut off at the output limit (`max_tokens`).',
    })
    expect(error.run).toMatchObject({ usage: { modelRequests: 1 }, stopReason: 'unexpected_model_behavior' })
    expect(error.run.responses).toHaveLength(1)
    expect(error.run.transcript.map(({ role }) => role)).toEqual(['user', 'assistant'])
  })

  test('TM-06 a pause counts the whole batch, records the paused turn and runs nothing', async () => {
    const ran: string[] = []
    const tools = [
      tool('free', () => void ran.push('free')),
      tool('gated', () => void ran.push('gated'), { requiresApproval: true }),
    ]
    using model = new ScriptedModel().callsAll([{ name: 'free' }, { name: 'gated', arguments: { n: 1 } }], {
      text: 'May I?',
    })
    const stream = harnessOf({ model, tools, limits: { toolCalls: 2 } }).stream('Go.', {
      runId: 'run_p',
      deltas: false,
    })
    const events = await eventsOf(stream)
    const result = await stream.result
    const pending = [{ kind: 'approval', callId: 'call_2', toolName: 'gated', arguments: '{"n":1}', path: ['run_p'] }]
    expect(ran).toEqual([])
    expect(result).toMatchObject({ text: 'May I?', stopReason: 'approval_required', pending })
    expect(result.usage).toMatchObject({ modelRequests: 1, toolCalls: 2 })
    expect(result.responses).toHaveLength(1)
    expect(result.resumeState).toMatchObject({
      kind: 'run_state',
      phase: { at: 'batch', admitted: true },
      responses: JSON.parse(JSON.stringify(result.responses)) as unknown,
    })
    expect(kinds(events)).toBe('run_started model_request_started model_message approval_requested run_completed')
  })

  test('TM-12 the `model_message` event names the mode in which an answer was accepted', async () => {
    const modes = async (model: ScriptedModel, options: object): Promise<unknown[]> => {
      const events = await eventsOf(harnessOf({ model, tools: [tool('a')], ...options }).stream('Go.'))
      model.assertDone()
      return ofKind(events, 'model_message').map(({ finalizedOutputMode }) => finalizedOutputMode)
    }
    const called = new ScriptedModel().calls('a').calls('final_result', { answer: 'yes' })
    const prompted = new ScriptedModel().calls('a').says('no').says('{"answer":"yes"}')
    expect(await modes(called, { outputType: answer })).toEqual([null, 'tool'])
    expect(await modes(prompted, { outputType: answer, outputMode: 'prompted' })).toEqual([null, null, 'prompted'])
    expect(await modes(new ScriptedModel().says('yes'), { outputType: z.string() })).toEqual(['text'])
    expect(await modes(new ScriptedModel().says('yes'), {})).toEqual([null])
  })
})

describe('replies that are not answers', () => {
  test.each<[string, ScriptedModel, string]>([
    ['a refusal', new ScriptedModel().refuses('No.'), 'The model refused to answer (`refusal`): No.'],
    [
      'a filtered reply',
      new ScriptedModel().says('Half', { finishReason: 'content_filter' }),
      "The provider's content filter stopped the reply (`content_filter`).",
    ],
    [
      'an error of the provider',
      new ScriptedModel().says('', { finishReason: 'error' }),
      'The provider ended the reply with an error (`error`).',
    ],
    [
      'two empty replies',
      new ScriptedModel().says('').replies({ reasoning: 'Hm.' }),
      'The model gave an empty reply twice.',
    ],
  ])('TM-05 an unusable reply fails with `unexpected_model_behavior`: %s', async (_name, model, message) => {
    const error = await failureOf(harnessOf({ model }).run('Go.'))
    expect(error).toMatchObject({ code: 'unexpected_model_behavior', message })
    model.assertDone()
  })

  test('an empty reply is requested again once, a pause is continued, without new content', async () => {
    using model = new ScriptedModel().says('').replies({ text: 'Wait', finishReason: 'pause' }).says('Done.')
    const stream = harnessOf({ model }).stream('Go.')
    const events = await eventsOf(stream)
    expect((await stream.result).text).toBe('Done.')
    expect(
      ofKind(events, 'model_request_started').map(({ requestKind, entries }) => [requestKind, entries.length]),
    ).toEqual([
      ['start', 0],
      ['empty_retry', 0],
      ['pause_continuation', 0],
    ])
    expect(model.heard.slice(1)).toEqual([{ kind: 'continuation' }, { kind: 'continuation' }])
  })

  test.each([
    ['length', 'the reply was cut off at the output limit'],
    ['cancelled', 'the reply was cancelled'],
  ] as const)(
    'a call of a truncated reply is never run, and is answered so that it can be repeated: %s',
    async (finishReason, why) => {
      const ran: unknown[] = []
      using model = new ScriptedModel()
        .calls('a', { path: '/tm' }, { finishReason })
        .calls('a', { path: '/tmp' })
        .says('Done.')
      const result = await harnessOf({ model, tools: [tool('a', (args) => void ran.push(args))] }).run('Go.')
      expect(ran).toEqual([{ path: '/tmp' }])
      expect(model.heard[1]).toEqual({
        kind: 'tool_outputs',
        outputs: [
          output(
            'call_1',
            `\`a\` was not run: ${why}, so the call may be incomplete. Call it again, with less at once.`,
            { ok: false },
          ),
        ],
      })
      const again = harnessOf({ model: new ScriptedModel().says('More.') })
      expect((await again.run('More.', { history: stored(result) })).transcript).toMatchObject([
        {},
        { finishReason },
        {},
        {},
        {},
        {},
        {},
        {},
      ])
    },
  )
})
