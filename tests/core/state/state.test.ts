import { describe, expect, test } from 'vitest'
import type { DurableEvent, TranscriptEntry } from 'thinharness'
import { apply, fold } from '#core/loop/apply.js'
import { StateAhead } from '#core/loop/run-context.js'
import { closedTranscript, lengthWhenClosed } from '#core/state/closing.js'
import { openState } from '#core/state/state.js'
import type { BatchCall } from '#core/state/batch-call.js'
import type { RunState } from '#core/state/state.js'
import { AT, calls, event, RULES, Story, text, USAGE, user } from './support.js'
import { NO_TOKENS } from '#contracts/entry.js'

const OPENED: RunState = {
  kind: 'run_state',
  version: 3,
  runId: 'run_t',
  parent: null,
  seq: 1,
  startedAt: AT,
  begunAt: AT,
  updatedAt: AT,
  root: '/work',
  provider: 'p',
  model: 'm',
  metadata: { tenant: 1 },
  rules: RULES,
  config: null,
  transcript: [user(0, 'Go.')],
  firstEntry: 0,
  phase: { at: 'opening' },
  usage: {
    modelRequests: 0,
    toolCalls: 0,
    cancelledToolCalls: 0,
    outputRetries: 0,
    toolRetries: {},
    hookFailures: 0,
    children: { modelRequests: 0, toolCalls: 0 },
    ...NO_TOKENS,
    costUsd: null,
    byModel: {},
  },
  told: [],
  closing: null,
  staleTurns: 0,
  streaks: {},
  notes: {},
}

function reply(index: number, parts: ReturnType<typeof text>): TranscriptEntry {
  const finishReason = parts.some((part) => part.type === 'tool_call') ? 'tool_calls' : 'stop'
  return {
    role: 'assistant',
    id: `e${index + 1}`,
    at: AT,
    parts,
    provider: 'p',
    model: 'm',
    finishReason,
    usage: USAGE,
  }
}

function open(callId: string, name: string, changes: Partial<BatchCall> = {}): BatchCall {
  const fresh = { started: false, entries: 0, waiting: [], answers: [], verdict: null, children: [], settled: null }
  return { callId, name, arguments: '{}', ...fresh, ...changes }
}

describe('the state at the first event', () => {
  test('of a fresh run', () => {
    expect(new Story({ metadata: { tenant: 1 } }).state).toEqual(OPENED)
  })

  test('of a run that continues a conversation knows the start of its own entries', () => {
    const history = [user(0, 'Before.'), reply(1, text('Yes.'))]
    expect(new Story({ history }).state).toMatchObject({ transcript: [...history, user(2, 'Go.')], firstEntry: 2 })
  })

  test('of a child run knows its parent', () => {
    const child = { ...event('run_started', 1), parentRunId: 'run_p', parentToolCallId: 'call_1', agentName: 'scout' }
    expect(openState(child as never).parent).toEqual({ runId: 'run_p', callId: 'call_1', agentName: 'scout' })
  })
})

describe('the effect of each event', () => {
  const batch = (...names: readonly string[]): Story =>
    new Story({ metadata: { tenant: 1 } }).asks().replies(calls(...names))

  /** The members of the state that differ from the one before. */
  function changes(story: Story, next: (story: Story) => Story): Partial<RunState> {
    const before = structuredClone(story.state)
    const after = next(story).state
    return Object.fromEntries(
      Object.entries(after).filter(([key, value]) => {
        return JSON.stringify(value) !== JSON.stringify(before[key as keyof RunState])
      }),
    )
  }

  test('a request adds its new messages', () => {
    const story = new Story()
    const added = { entries: [user(1, 'And now?')], promptAddition: 'Context.', notices: ['n'] }
    expect(changes(story, (it) => it.asks(added))).toEqual({
      seq: 2,
      transcript: [user(0, 'Go.\n\nContext.'), user(1, 'And now?')],
      phase: { at: 'asking', requestKind: 'start', notices: ['n'] },
    })
  })

  test('SO-16 a corrective request counts itself', () => {
    const story = new Story().asks().replies(text('one'), { kind: 'retry_user_message', message: 'JSON.' })
    expect(changes(story, (it) => it.asks({ requestKind: 'correction' }))).toMatchObject({
      usage: { outputRetries: 1 },
      phase: { at: 'asking', requestKind: 'correction' },
    })
  })

  test('a reply joins, is counted, and marks its notices as sent', () => {
    const story = new Story().asks({ notices: ['n'] })
    const resolution = { kind: 'final', mode: null, callId: null } as const
    expect(changes(story, (it) => it.replies(text('Done.'), resolution))).toEqual({
      seq: 3,
      transcript: [user(0, 'Go.'), reply(1, text('Done.'))],
      phase: { at: 'answered', resolution },
      usage: {
        ...OPENED.usage,
        modelRequests: 1,
        inputTokens: 10,
        outputTokens: 5,
        byModel: { 'p:m': { ...USAGE, modelRequests: 1, costUsd: null } },
      },
      told: ['n'],
    })
  })

  test('a reply that calls tools opens a batch, counted whole', () => {
    expect(batch('a', 'b').state).toMatchObject({
      phase: { at: 'batch', admitted: true, calls: [open('call_1', 'a'), open('call_2', 'b')], exceeded: null },
      usage: { modelRequests: 1, toolCalls: 2 },
    })
  })

  test('HC-12 a batch over the limit is not counted', () => {
    const rules = { ...RULES, limits: { ...RULES.limits, toolCalls: 1 } }
    const { state } = new Story({ rules }).asks().replies(calls('a', 'b'))
    expect(state).toMatchObject({ phase: { at: 'batch', admitted: false }, usage: { toolCalls: 0 } })
  })

  test('a call starts', () => {
    expect(changes(batch('a', 'b'), (it) => it.starts('call_2'))).toMatchObject({
      phase: { calls: [open('call_1', 'a'), open('call_2', 'b', { started: true, entries: 1 })] },
    })
  })

  test('a call ends; its entry waits until the batch is closed by the next request, in model order', () => {
    const story = batch('a', 'b')
    const settled = {
      at: AT,
      output: '{"ok":true,"content":"ok","metadata":{}}',
      parts: null,
      ok: true,
      cancelled: false,
      retryKind: null,
    }
    expect(changes(story, (it) => it.completes('call_2'))).toMatchObject({
      seq: 4,
      phase: { calls: [{ settled: null }, { settled }] },
    })
    story.completes('call_1', { ok: false, output: '{"ok":false}' })
    expect(lengthWhenClosed(story.state)).toBe(4)
    expect(story.state.transcript).toHaveLength(2)
    story.asks({ requestKind: 'tool_outputs', entries: [user(4, 'Notice.')] })
    expect(story.state.transcript.slice(2)).toEqual([
      { role: 'tool', id: 'e3', at: AT, callId: 'call_1', name: 'a', content: '{"ok":false}', isError: true },
      { role: 'tool', id: 'e4', at: AT, callId: 'call_2', name: 'b', content: settled.output, isError: false },
      user(4, 'Notice.'),
    ])
  })

  test('images of a result follow its envelope', () => {
    const image = { type: 'image', data: 'AAAA', mediaType: 'image/png' } as const
    const { state } = batch('a')
      .completes('call_1', { parts: [image] })
      .asks({ requestKind: 'tool_outputs' })
    expect(state.transcript[2]).toMatchObject({
      content: [{ type: 'text', text: '{"ok":true,"content":"ok","metadata":{}}' }, image],
    })
  })

  test('TM-07 a cancelled call is counted and recorded', () => {
    expect(changes(batch('a'), (it) => it.completes('call_1', { cancelled: true, ok: false }))).toMatchObject({
      usage: { toolCalls: 1, cancelledToolCalls: 1 },
      notes: { call_1: { cancelled: true } },
    })
  })

  test.each<[string, readonly [string, Parameters<Story['completes']>[1]][], object]>([
    [
      'counts once the batch is whole',
      [['call_1', { ok: false, retryKind: 'ModelRetry' }]],
      { streaks: {}, usage: { toolRetries: {} } },
    ],
    [
      'counts in model order, whoever ended first',
      [
        ['call_2', { ok: true }],
        ['call_1', { ok: false, retryKind: 'ModelRetry' }],
      ],
      { streaks: { a: 0 }, usage: { toolRetries: { a: 1 } } },
    ],
    [
      'counts one failure in a row for a batch',
      [
        ['call_1', { ok: false, retryKind: 'ModelRetry' }],
        ['call_2', { ok: false, retryKind: 'ValidationError' }],
      ],
      {
        streaks: { a: 1 },
        usage: { toolRetries: { a: 2 } },
        phase: { exceeded: null },
      },
    ],
    [
      'does not count cancelled calls nor plain failures',
      [
        ['call_1', { ok: false, cancelled: true, retryKind: 'ModelRetry' }],
        ['call_2', { ok: false }],
      ],
      { streaks: {}, usage: { toolRetries: {} }, phase: { exceeded: null } },
    ],
  ])('TR-10 retryable failures are counted per tool: %s', (_name, ended, expected) => {
    const story = batch('a', 'a')
    for (const [callId, payload] of ended) story.completes(callId, payload)
    expect(story.state).toMatchObject(expected)
  })

  test('a success ends the streak of its tool, not the count of its failures; a limit of the tool wins', () => {
    const rules = { ...RULES, toolRetryBudgets: { a: 2 } }
    const failing = { ok: false, retryKind: 'ModelRetry' } as const
    const story = new Story({ rules }).asks()
    for (let turn = 0; turn < 2; turn++) story.replies(calls('a')).completes('call_1', failing).asks()
    expect(story.state).toMatchObject({ streaks: { a: 2 } })
    story.replies(calls('a')).completes('call_1')
    expect(story.state).toMatchObject({ streaks: { a: 0 }, usage: { toolRetries: { a: 2 } } })
  })

  test('a tool may have the name of a property of every object', () => {
    const failing = { ok: false, retryKind: 'ModelRetry' } as const
    const { state } = new Story().asks().replies(calls('constructor')).completes('call_1', failing)
    expect(state).toMatchObject({ streaks: { constructor: 1 }, usage: { toolRetries: { constructor: 1 } } })
  })

  test('a hook that failed is counted', () => {
    const next = (it: Story): Story => it.then('hook_failed', { hookEvent: 'run_start', message: 'No.' })
    expect(changes(new Story(), next)).toEqual({ seq: 2, usage: { ...OPENED.usage, hookFailures: 1 } })
  })

  test('an approval waits, and its answer is noted', () => {
    const item = { kind: 'approval', callId: 'call_1', toolName: 'a', arguments: '{}', path: ['run_t'] } as const
    const story = batch('a')
    expect(changes(story, (it) => it.then('approval_requested', { items: [item] }))).toMatchObject({
      phase: { calls: [{ waiting: [item] }] },
    })
    const answer = { callId: 'call_1', approved: false, reason: 'No.' }
    expect(changes(story, (it) => it.then('answer_received', { callId: 'call_1', answer }))).toMatchObject({
      phase: { calls: [{ waiting: [item], answers: [answer] }] },
      notes: { call_1: { approval: { approved: false, reason: 'No.' } } },
    })
  })

  test.each(['limit_warning', 'model_retry', 'transcript_repaired', 'cache_bust', 'approval_resumed'] as const)(
    '%s changes nothing',
    (kind) => {
      expect(changes(batch('a'), (it) => it.then(kind))).toEqual({ seq: 4 })
    },
  )

  test('a pause leaves the run open, an end closes it', () => {
    const paused = { stopReason: 'approval_required', pending: ['call_1'] } as const
    expect(changes(batch('a'), (it) => it.then('run_completed', paused))).toEqual({
      seq: 4,
      paused: 'approval_required',
    })
    const ended = { stopReason: 'end_turn', pending: [] } as const
    const answered = new Story().asks().replies(text('Done.'))
    expect(changes(answered, (it) => it.then('run_completed', ended))).toEqual({
      seq: 4,
      phase: { at: 'ended', stopReason: 'end_turn' },
    })
  })
})

describe('a run that ends with open calls', () => {
  const error = { code: 'cancelled', message: 'Cancelled.' } as const
  const failed = { stopReason: 'cancelled', ...error } as const

  test('160 a closed transcript answers each call: ended, unknown, or without effect', () => {
    const { state } = new Story()
      .asks()
      .replies(calls('a', 'b', 'c'))
      .starts('call_2')
      .completes('call_1')
      .then('run_failed', failed)
    const content = (said: string, errorType: string): string =>
      JSON.stringify({ ok: false, content: said, metadata: { error_type: errorType } })
    expect(state.phase).toMatchObject({ at: 'ended', stopReason: 'cancelled', error, position: { at: 'batch' } })
    expect(state.transcript).toHaveLength(2)
    expect(closedTranscript(state).slice(2)).toMatchObject([
      { callId: 'call_1', content: '{"ok":true,"content":"ok","metadata":{}}', isError: false },
      {
        callId: 'call_2',
        content: content('The run ended while this call was under way: its outcome is unknown.', 'Interrupted'),
        isError: true,
      },
      {
        callId: 'call_3',
        content: content('The run ended before this call was made: it had no effect.', 'Cancelled'),
        isError: true,
      },
    ])
  })

  test('accepts the final answer that it ended with', () => {
    const { state } = new Story()
      .asks()
      .replies(calls('final_result'), { kind: 'final', mode: 'tool', callId: 'call_1', output: 1 })
      .then('run_completed', { stopReason: 'end_turn', pending: [] })
    expect(state.transcript[2]).toMatchObject({
      content: '{"ok":true,"content":"The final answer was accepted.","metadata":{}}',
      isError: false,
    })
  })
})

describe('folding', () => {
  test('yields the state of the run, from its beginning', () => {
    const story = new Story().asks().replies(calls('a')).starts('call_1').completes('call_1')
    expect(fold(story.events)).toEqual(story.state)
    expect(fold([])).toBeUndefined()
  })

  test.each<[string, () => unknown, string]>([
    [
      'a log that begins in the middle',
      () => fold([event('hook_failed', 1)]),
      'Expected a log to begin with `run_started`, got `hook_failed`.',
    ],
    ['a gap', () => apply(new Story().state, event('hook_failed', 3)), 'Expected event 2 of run `run_t`, got event 3.'],
    [
      'an event twice',
      () => apply(new Story().asks().state, event('hook_failed', 2)),
      'Expected event 3 of run `run_t`, got event 2.',
    ],
    [
      'a call that nobody made',
      () => new Story().asks().replies(calls('a')).starts('call_9'),
      'Expected call `call_9` in the batch of run `run_t`.',
    ],
  ])('rejects %s', (_name, act, message) => {
    expect(act).toThrow(message)
  })
})

test('what the state of a run refuses is refused ahead of it, before it is stored; the state stays as it is', () => {
  const ahead = new StateAhead()
  const { state } = new Story().asks()
  const before = JSON.stringify(state)
  const fold = (...events: readonly DurableEvent[]) => ahead.fold(state, events, { entries: [] })
  for (const refused of [event('tool_call_completed', 4, { callId: 'call_9' }), event('hook_failed', 5)])
    expect(() => fold(event('hook_failed', 3), refused)).toThrow(/^Expected/)
  expect(JSON.stringify(state)).toBe(before)
  fold(event('hook_failed', 3), event('hook_failed', 4))
})
