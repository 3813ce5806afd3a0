import { describe, expect, test } from 'vitest'
import { ModelRetry } from 'thinharness'
import type { Hook, JsonObject } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { eventsOf, harnessOf, ofKind, output, rejects, tool } from '../../../harness/support.js'

/** Rejects with something that is no error, as a host may. */
describe('registration', () => {
  const handler = (): undefined => undefined

  test.each<[string, unknown, string]>([
    [
      'an unknown event',
      { event: 'before_toolcall', handler },
      'got `before_toolcall`. Did you mean `before_tool_call`?',
    ],
    [
      'a handler that is none',
      { event: 'run_end', handler: 'log' },
      'Expected `handler` of a `run_end` hook to be a function, got `log`.',
    ],
    [
      'an empty filter',
      { event: 'before_tool_call', handler, tools: [] },
      'Expected `tools` of a `before_tool_call` hook to be a list with at least one name, got an empty list.',
    ],
    [
      'a tool filter on another event',
      { event: 'run_start', handler, tools: ['a'] },
      '`tools` filters tool events only; a `run_start` hook cannot have it.',
    ],
    [
      'a time limit that is none',
      { event: 'run_start', handler, timeoutMs: 0 },
      'Expected `timeoutMs` of a `run_start` hook to be a whole number from 1 to 2147483647, got `0`.',
    ],
    ['what is no hook', null, 'Expected the options of a hook to be an object, got `null`.'],
    [
      'an unknown member',
      { event: 'run_end', handler, tool: ['a'] },
      'Unknown option of a `run_end` hook: `tool`. Did you mean `tools`?',
    ],
  ])('HK-02 an invalid hook is rejected: %s', (_name, hook, message) => {
    expect(() => harnessOf({ hooks: [hook as Hook] })).toThrow(
      expect.objectContaining({ code: 'invalid_options', message: expect.stringContaining(message) as string }),
    )
  })

  test('HK-03 a filter may name any tool; for a tool that does not exist the hook never fires', async () => {
    const fired: string[] = []
    const hook: Hook = { event: 'before_tool_call', tools: ['a', 'ghost'], handler: (c) => void fired.push(c.toolName) }
    using model = new ScriptedModel().callsAll([{ name: 'a' }, { name: 'b' }]).says('Done.')
    await harnessOf({ model, tools: [tool('a'), tool('b')], hooks: [hook] }).run('Go.')
    expect(fired).toEqual(['a'])
  })
})

describe('failing hooks', () => {
  test('HC-03 hooks that fail open are reported, counted and skipped, whatever they throw', async () => {
    const hooks: Hook[] = [
      { event: 'run_start', handler: () => Promise.reject(new Error('Start.')) },
      {
        event: 'user_prompt_submit',
        failMode: 'open',
        handler: () => {
          throw new ModelRetry('Prompt.')
        },
      },
      { event: 'before_tool_call', failMode: 'open', handler: () => rejects('Before.') },
      { event: 'after_tool_call', failMode: 'open', handler: () => rejects(undefined) },
      { event: 'run_end', timeoutMs: 5, handler: () => new Promise(() => undefined) },
    ]
    using model = new ScriptedModel().calls('a').says('Done.')
    const stream = harnessOf({ model, tools: [tool('a')], hooks }).stream('Go.')
    const events = await eventsOf(stream)
    expect(ofKind(events, 'hook_failed').map(({ hookEvent, message }) => [hookEvent, message])).toEqual([
      ['run_start', 'Start.'],
      ['user_prompt_submit', 'Prompt.'],
      ['before_tool_call', 'Before.'],
      ['after_tool_call', 'unknown error'],
      ['run_end', 'It took longer than 5 ms.'],
    ])
    expect((await stream.result).usage.hookFailures).toBe(5)
    expect(model.heard[1]).toEqual({ kind: 'tool_outputs', outputs: [output('call_1', 'ok')] })
  })

  test.each<[string, Hook]>([
    ['a text in place of an answer', { event: 'before_tool_call', handler: () => 'no' as never }],
    ['arguments that are no object', { event: 'before_tool_call', handler: () => ({ args: 'no' as never }) }],
    ['arguments that are no JSON', { event: 'before_tool_call', handler: () => ({ args: circular() }) }],
    ['an output that is no text', { event: 'after_tool_call', handler: () => ({ output: 5 as never }) }],
    ['an envelope that is none', { event: 'after_tool_call', handler: () => ({ envelope: 'ok' as never }) }],
    [
      'an envelope that is no JSON',
      { event: 'after_tool_call', handler: () => ({ envelope: { ok: true, content: 'x', metadata: circular() } }) },
    ],
    ['context that is no text', { event: 'user_prompt_submit', handler: () => ({ context: [5] as never }) }],
  ])('%s counts as a failure; a hook that fails open changes nothing then', async (_name, given) => {
    const hook: Hook = { ...given, failMode: 'open' }
    using model = new ScriptedModel().calls('a').says('Done.')
    const stream = harnessOf({ model, tools: [tool('a')], hooks: [hook] }).stream('Go.')
    const events = await eventsOf(stream)
    expect((await stream.result).text).toBe('Done.')
    expect(ofKind(events, 'hook_failed')).toMatchObject([{ hookEvent: hook.event }])
    expect(model.heard).toEqual([
      { kind: 'start', prompt: 'Go.' },
      { kind: 'tool_outputs', outputs: [output('call_1', 'ok')] },
    ])
  })

  function circular(): JsonObject {
    const args: Record<string, unknown> = {}
    args['self'] = args
    return args as JsonObject
  }
})
