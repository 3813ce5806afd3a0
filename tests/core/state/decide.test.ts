import { describe, expect, test } from 'vitest'
import type { RunRules } from '#core/state/run-rules.js'
import { NO_USAGE } from '#contracts/run-usage.js'
import { decide, decideSteering } from '#core/loop/decide.js'
import type { Command } from '#core/loop/decide.js'
import { calls, RULES, Story, text, user } from './support.js'

const ASK = { kind: 'ask', correction: null, notices: [], closing: null } as const

type Changes = Partial<Omit<RunRules, 'limits'>> & { readonly limits?: Partial<RunRules['limits']> }

function rules(changes: Changes = {}): { rules: RunRules } {
  return { rules: { ...RULES, ...changes, limits: { ...RULES.limits, ...changes.limits } } }
}

const asked = (): Story => new Story(rules()).asks({ entries: [user(0, 'Go.')] })
const failing = { ok: false, retryKind: 'ModelRetry' } as const
const approval = { kind: 'approval', callId: 'call_2', toolName: 'b', arguments: '{}', path: ['run_t'] } as const
const question = { ...approval, kind: 'question', callId: 'call_1' } as const
const retry = { kind: 'retry_user_message', message: 'Return JSON.' } as const

describe('the next step of a run', () => {
  test.each<[string, Story, Command]>([
    ['a run that has just begun asks its prompt', new Story(rules()), { ...ASK, requestKind: 'start' }],
    [
      'one that goes on from a conversation asks to resume it',
      new Story({ ...rules(), history: [user(0, 'Before.')] }),
      { ...ASK, requestKind: 'resume' },
    ],
    ['a request without an answer is made again', asked(), { kind: 'ask_again', requestKind: 'start' }],
    ['an answer finishes', asked().replies(text('Done.')), { kind: 'finish' }],
    [
      'a pause of the provider goes on',
      asked().replies([], { kind: 'ask_again', reason: 'pause' }),
      { ...ASK, requestKind: 'pause_continuation' },
    ],
    [
      'an empty reply is asked again',
      asked().replies([], { kind: 'ask_again', reason: 'empty' }),
      { ...ASK, requestKind: 'empty_retry' },
    ],
    [
      'what is no answer fails',
      asked().replies(text('I'), { kind: 'unexpected', message: 'Cut off.' }),
      { kind: 'fail', failure: { kind: 'unexpected', message: 'Cut off.' } },
    ],
    [
      'TM-04 an invalid answer is corrected in words',
      asked().replies(text('one'), retry),
      { ...ASK, requestKind: 'correction', correction: { message: 'Return JSON.', callId: null } },
    ],
    [
      'TM-03 invalid arguments are corrected in their call',
      asked().replies(calls('final_result'), { kind: 'retry_tool_output', callId: 'call_1', message: 'Again.' }),
      { ...ASK, requestKind: 'output_retry_tool', correction: { message: 'Again.', callId: 'call_1' } },
    ],
    [
      'a correction too many fails',
      asked().replies(text('one'), retry).asks({ requestKind: 'correction' }).replies(text('one'), retry),
      { kind: 'fail', failure: { kind: 'output', message: 'Return JSON.', retries: 1 } },
    ],
    [
      'with a budget of 0 corrections the first misfit fails',
      new Story(rules({ outputRetries: 0 })).asks().replies(text('one'), retry),
      { kind: 'fail', failure: { kind: 'output', message: 'Return JSON.', retries: 0 } },
    ],
    [
      'an ended run has ended',
      asked().replies(text('Done.')).then('run_failed', { stopReason: 'error' }),
      { kind: 'ended' },
    ],
  ])('TM-01 it follows from the state alone: %s', (_name, story, command) => {
    expect(decide(story.state)).toEqual(command)
  })
})

describe('a batch', () => {
  const batch = (...names: readonly string[]): Story => asked().replies(calls(...names))

  test('TM-02 calls that have not ended run, in model order', () => {
    const story = batch('a', 'b', 'c')
    expect(decide(story.state)).toMatchObject({
      kind: 'run_tools',
      calls: [{ callId: 'call_1' }, { callId: 'call_2' }, { callId: 'call_3' }],
    })
    story.starts('call_3').completes('call_3')
    expect(decide(story.state)).toMatchObject({
      kind: 'run_tools',
      calls: [{ callId: 'call_1' }, { callId: 'call_2' }],
    })
  })

  test('TM-02 one request answers the batch once all calls have ended', () => {
    const story = batch('a', 'b').completes('call_2').completes('call_1')
    expect(decide(story.state)).toEqual({ ...ASK, requestKind: 'tool_outputs' })
  })

  test('TM-06 the batch is held as a whole while an approval is pending, and runs as a whole after the last answer', () => {
    const story = batch('a', 'b').then('approval_requested', { items: [approval] })
    expect(decide(story.state)).toEqual({ kind: 'wait', items: [approval] })
    story.then('answer_received', { callId: 'call_2', answer: { callId: 'call_2', approved: true } })
    expect(decide(story.state)).toMatchObject({
      kind: 'run_tools',
      calls: [{ callId: 'call_1' }, { callId: 'call_2', answers: [{ approved: true }] }],
    })
    story.completes('call_1').completes('call_2')
    expect(decide(story.state)).toEqual({ ...ASK, requestKind: 'approval_resume' })
  })

  test('TM-06 it waits for a question only when no other call of it can run', () => {
    const story = batch('a', 'b').then('approval_requested', { items: [question] })
    expect(decide(story.state)).toMatchObject({ kind: 'run_tools', calls: [{ callId: 'call_2' }] })
    story.completes('call_2')
    expect(decide(story.state)).toEqual({ kind: 'wait', items: [question] })
  })

  test('TR-07 TR-10 it fails if a tool exceeded its consecutive failures, once the batch is complete', () => {
    const story = batch('a').completes('call_1', failing).asks()
    story.replies(calls('a', 'b')).completes('call_1', failing)
    expect(decide(story.state)).toMatchObject({ kind: 'run_tools', calls: [{ callId: 'call_2' }] })
    story.completes('call_2')
    expect(decide(story.state)).toEqual({
      kind: 'fail',
      failure: { kind: 'tool_retries', toolName: 'a', budget: 1, count: 2 },
    })
  })

  test('HC-12 a batch over the limit of calls does not run', () => {
    const story = new Story(rules({ limits: { toolCalls: 1 } })).asks().replies(calls('a', 'b'))
    expect(decide(story.state)).toEqual({
      kind: 'fail',
      failure: { kind: 'limit', breach: { kind: 'tool_calls', limit: 1, count: 2 } },
    })
  })
})

describe('limits', () => {
  test.each<[string, RunRules['limits'], Command]>([
    [
      'requests',
      { ...RULES.limits, modelRequests: 1 },
      { kind: 'fail', failure: { kind: 'limit', breach: { kind: 'model_requests', limit: 1, count: 1 } } },
    ],
    [
      'input tokens',
      { ...RULES.limits, inputTokens: 10 },
      { kind: 'fail', failure: { kind: 'limit', breach: { kind: 'input_tokens', limit: 10, count: 10 } } },
    ],
    [
      'output tokens',
      { ...RULES.limits, outputTokens: 4 },
      { kind: 'fail', failure: { kind: 'limit', breach: { kind: 'output_tokens', limit: 4, count: 5 } } },
    ],
  ])('HC-05 limits are checked before each further request of any kind: %s', (_name, limits, command) => {
    const started = { rules: { ...RULES, limits } }
    const begun = new Story(started).asks()
    const stories = [
      new Story(started).asks().replies(calls('a')).completes('call_1'),
      new Story(started).asks().replies(text('one'), retry),
      begun.replies([], { kind: 'ask_again', reason: 'empty' }),
    ]
    expect(stories.map(({ state }) => decide(state))).toEqual([command, command, command])
    expect(decideSteering(new Story(started).asks().replies(text('Done.')).state)).toEqual(command)
  })

  test('SO-16 a correction over its own limit fails as an output, one over the request limit as a limit', () => {
    const story = (modelRequests: number, outputRetries: number): Story =>
      new Story(rules({ outputRetries, limits: { modelRequests } })).asks().replies(text('one'), retry)
    expect(decide(story(1, 0).state)).toMatchObject({ failure: { kind: 'output' } })
    expect(decide(story(1, 1).state)).toMatchObject({ failure: { kind: 'limit' } })
  })

  test('HC-09 notices are sent with the request, model before tool, and not repeated', () => {
    const limits = { modelRequests: 3, toolCalls: 2 }
    const keys = ({ state }: Story): string[] => {
      const command = decide(state)
      return command.kind === 'ask' ? command.notices.map(({ key }) => key) : []
    }
    const story = new Story(rules({ limits })).asks().replies(calls('a')).completes('call_1')
    const oneCall = 'limit_warning:tool_calls:1'
    expect(keys(story)).toEqual([oneCall])
    story.asks({ notices: [oneCall] }).replies(calls('b'))
    expect(story.state.told).toEqual([oneCall])
    expect(keys(story.completes('call_1'))).toEqual(['limit_warning:model_requests:1', 'limit_warning:tool_calls:0'])
  })

  test('the notices of a request that was never answered are sent again with it', () => {
    const story = new Story(rules({ limits: { modelRequests: 1 } })).asks({
      notices: ['limit_warning:model_requests:1'],
    })
    expect(story.state.told).toEqual([])
    expect(decide(story.state)).toEqual({ kind: 'ask_again', requestKind: 'start' })
  })
})

describe('work in the background', () => {
  const left = { key: '1', childRunId: 'run_c', agent: 'worker', task: 'Work.', arguments: '{}' }
  const item = { ...question, callId: 'call_1/1/call_1', path: ['run_t', 'run_c'] }
  const reported = {
    ...{ callId: 'call_1', toolName: 'a', childRunId: 'run_c', agent: 'worker', ok: true, errorType: null },
    ...{ content: 'Worked.', source: { kind: 'agent' as const }, childUsage: NO_USAGE },
  } as const
  const leaving = (changes: Changes = {}): Story =>
    new Story(rules(changes))
      .asks()
      .replies(calls('a'))
      .starts('call_1')
      .completes('call_1', { background: [left] })
  const closing = { kind: 'time_ms', limit: 10, count: 9 } as const
  const asking = (story: Story): Story =>
    story.then('approval_requested', { items: [item], background: 'call_1/1', children: [] })

  test.each<[string, Story, Command]>([
    ['holds up no turn', leaving(), { ...ASK, requestKind: 'tool_outputs' }],
    ['is waited for behind an answer', leaving().asks().replies(text('Done.')), { kind: 'await_others' }],
    [
      'is told once it has ended',
      leaving().asks().replies(text('Done.')).then('background_reported', reported),
      { ...ASK, requestKind: 'background_report' },
    ],
    [
      'that has been told is waited for no more',
      leaving().then('background_reported', reported).asks().replies(text('Done.')),
      { kind: 'finish' },
    ],
    [
      'that no request can tell any more leaves the answer as it is',
      leaving({ limits: { modelRequests: 2 } })
        .asks()
        .replies(text('Done.'))
        .then('background_reported', reported),
      { kind: 'finish' },
    ],
    [
      'that asks people has the run wait when it has its answer',
      asking(leaving().asks().replies(text('Done.'))),
      { kind: 'wait', items: [item] },
    ],
    ['that asks people holds up no turn', asking(leaving()), { ...ASK, requestKind: 'tool_outputs' }],
    [
      'that asks people is asked about with a batch that waits',
      asking(
        leaving()
          .asks()
          .replies([{ type: 'tool_call', callId: 'call_2', name: 'b', arguments: '{}' }]),
      ).then('approval_requested', { items: [approval] }),
      { kind: 'wait', items: [approval, item] },
    ],
    [
      'that has its answer is at work again',
      asking(leaving().asks().replies(text('Done.'))).then('answer_received', {
        callId: item.callId,
        answer: { callId: item.callId, answer: 'red' },
      }),
      { kind: 'await_others' },
    ],
    [
      'is ended where the answer was asked for because time runs out',
      leaving({ onLimit: 'answer' }).asks({ closing }).replies(text('Done.')),
      { kind: 'end_others' },
    ],
  ])('%s', (_, { state }, command) => {
    expect(decide(state)).toEqual(command)
  })
})
