import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineExtension, defineTool, memoryLog, ModelRetry, textOf, toolCallsOf } from 'thinharness'
import type { HarnessError, Hook, ModelTurn, WrapModelCall, WrapToolCall } from 'thinharness'
import type { ToolCall } from '#core/extension/wraps.js'
import { ScriptedModel } from 'thinharness/testing'
import { ask, delegateTool, playing } from '../../../run/children/children-support.js'
import { stored } from '../../../run/resume/pause-support.js'
import { envelopeIn } from '../../../run/children/subagents-support.js'
import { eventsOf, failureOf, harnessOf, ofKind, tool } from '../../../harness/support.js'
import { eventsOfRun } from '../../../support/collect.js'

describe('wrapModelCall', () => {
  test('wraps each request, the first outermost, in children too; its return value is recorded', async () => {
    const seen: string[] = []
    const note =
      (name: string): WrapModelCall =>
      async (call, next) => {
        seen.push(`${name} ${call.agentName ?? 'top'} ${call.requestKind}`)
        const turn = await next(call)
        const part = { type: 'text' as const, text: `${textOf(turn.entry.parts)}${name}` }
        return toolCallsOf(turn.entry.parts).length > 0 ? turn : { ...turn, entry: { ...turn.entry, parts: [part] } }
      }
    const model = playing({ go: [['delegate'], 'Done.'], a: ['A.'] })
    const wrapModelCall = [note('1'), note('2')]
    const result = await harnessOf({ model, tools: [delegateTool('delegate', { a: [] })], wrapModelCall }).run('go')
    expect(result.text).toBe('Done.21')
    expect(result.transcript.at(-1)).toMatchObject({ role: 'assistant', parts: [{ type: 'text', text: 'Done.21' }] })
    expect(seen).toEqual([
      ...['1 top start', '2 top start', '1 default start', '2 default start'],
      ...['1 top tool_outputs', '2 top tool_outputs'],
    ])
    expect(result.toolCallRecords[0]?.output).toContain('A.21')
  })

  test('may ask with another call, ask again, or not at all', async () => {
    const model = new ScriptedModel().fails('Down.').says('Second.')
    const wrapModelCall: WrapModelCall[] = [
      async (call, next) => {
        const changed = { ...call, constants: { ...call.constants, instructions: 'Changed.' } }
        return next(changed).catch(() => next(changed))
      },
    ]
    const harness = harnessOf({ model, wrapModelCall })
    const first = await harness.run('Go.')
    expect([first.text, first.usage.modelRequests]).toEqual(['Second.', 1])
    expect(model.requests.map(({ constants }) => constants.instructions)).toEqual(['Changed.', 'Changed.'])
    let kept: Promise<ModelTurn> | undefined
    const once = new ScriptedModel().says('Kept.')
    const caching = harnessOf({ model: once, wrapModelCall: [(call, next) => (kept ??= next(call))] })
    expect([(await caching.run('a')).text, (await caching.run('b')).text]).toEqual(['Kept.', 'Kept.'])
    expect(once.requests).toHaveLength(1)
  })

  test('that fails ends the run, and is named; an error of the request keeps its cause', async () => {
    const model = () => new ScriptedModel().always('Done.')
    const broken: WrapModelCall = () => Promise.reject(new Error('Oops.'))
    const error = await failureOf(harnessOf({ model: model(), wrapModelCall: [broken] }).run('Go.'))
    expect([error.code, error.message]).toEqual(['hook_failed', 'A `wrapModelCall` failed: Oops.'])
    const through: WrapModelCall = (call, next) => next(call)
    const down = new ScriptedModel().fails(new Error('Odd.'))
    const plain = await failureOf(harnessOf({ model: down, wrapModelCall: [through] }).run('Go.'))
    expect([plain.code, plain.message]).toEqual(['error', 'The run failed: Odd.'])
  })

  test('an invalid one is rejected', () => {
    expect(() => harnessOf({ wrapModelCall: [1 as never] })).toThrow(
      'Expected `wrapModelCall[0]` of `Harness` to be a function',
    )
    expect(() => harnessOf({ wrapToolCall: {} as never })).toThrow(
      'Expected `wrapToolCall` of `Harness` to be a list of functions',
    )
  })
})

describe('wrapToolCall', () => {
  const run = async (wrapToolCall: readonly WrapToolCall[]) => {
    const ran: unknown[] = []
    const a = tool('a', (args) => {
      ran.push(args)
      return 'A.'
    })
    const model = new ScriptedModel().calls('a', { n: 1 }).always('Done.')
    const stream = harnessOf({ model, tools: [a], wrapToolCall }).stream('Go.')
    const events = await eventsOf(stream)
    return { result: await stream.result.catch((error: unknown) => error as HarnessError), events, ran }
  }

  test('wraps each call with valid arguments, the first outermost, and returns the result for the model', async () => {
    const seen: unknown[] = []
    const note =
      (name: string): WrapToolCall =>
      async ({ tool: spec, args, callId, agentName }: ToolCall, next) => {
        seen.push([name, spec.name, args, callId, agentName])
        const outcome = await next()
        return outcome.kind === 'succeeded' ? { ...outcome, content: `${outcome.content}${name}` } : outcome
      }
    const { result, ran } = await run([note('1'), note('2')])
    expect('text' in result && envelopeIn(result.toolCallRecords[0]).content).toBe('A.21')
    expect(seen).toEqual([
      ['1', 'a', { n: 1 }, 'call_1', null],
      ['2', 'a', { n: 1 }, 'call_1', null],
    ])
    expect(ran).toEqual([{ n: 1 }])
  })

  test('may answer in place of the tool, as a handler would, or ask for a retry', async () => {
    const kept = await run([() => ({ from: 'cache' })])
    expect('text' in kept.result && envelopeIn(kept.result.toolCallRecords[0]).content).toBe('{"from":"cache"}')
    const retry: WrapToolCall = () => {
      throw new ModelRetry('Otherwise.')
    }
    const again = await run([retry])
    expect('text' in again.result && envelopeIn(again.result.toolCallRecords[0])).toMatchObject({
      ok: false,
      content: 'Otherwise.',
    })
    expect([kept.ran, again.ran, ofKind(again.events, 'hook_failed')]).toEqual([[], [], []])
  })

  test('that fails is a failed result, reported and counted', async () => {
    const broken: WrapToolCall = () => Promise.reject(new Error('Oops.'))
    const { result, events, ran } = await run([broken])
    expect(ofKind(events, 'hook_failed')).toMatchObject([{ hookEvent: 'wrapToolCall', message: 'Oops.' }])
    expect('text' in result && [result.text, result.usage.hookFailures, ran]).toEqual(['Done.', 1, []])
    expect('text' in result && envelopeIn(result.toolCallRecords[0]).ok).toBe(false)
  })

  test('lets a call that waits for a person pass, whatever it returns', async () => {
    const swallowing: WrapToolCall = (_, next) => next().catch(() => 'Swallowed.')
    const harness = () =>
      harnessOf({
        model: playing({ go: [['ask'], 'Done.'] }),
        tools: [ask],
        wrapToolCall: [swallowing],
      })
    const paused = await harness().run('go')
    expect(paused.pending.map(({ kind }) => kind)).toEqual(['question'])
    const done = await harness().resume(stored(paused), [{ callId: 'call_1', answer: 'that' }])
    expect(envelopeIn(done.toolCallRecords[0]).content).toBe('that')
  })
})

describe('arguments that a wrap passes on', () => {
  const key: WrapToolCall = ({ args }, next) => next({ ...args, key: 'sk-1' })
  const parameters = z.object({ n: z.number(), key: z.string().optional() })

  test('are those of the wraps inside it and of the tool, and are not stored', async () => {
    const seen: unknown[] = []
    const log = memoryLog()
    const pay = defineTool({
      ...{ name: 'pay', description: 'Pays.', parameters },
      handler: (args) => void seen.push(['tool', args]),
    })
    const note =
      (name: string): WrapToolCall =>
      ({ args }, next) => {
        seen.push([name, args])
        return next()
      }
    const model = new ScriptedModel().calls('pay', { n: 1 }).says('Done.')
    const wrapToolCall = [note('outer'), key, note('inner')]
    await harnessOf({ model, tools: [pay], wrapToolCall, log }).run('Go.', { runId: 'run_1' })
    expect(seen).toEqual([
      ['outer', { n: 1 }],
      ['inner', { n: 1, key: 'sk-1' }],
      ['tool', { n: 1, key: 'sk-1' }],
    ])
    expect(JSON.stringify([await eventsOfRun(log, 'run_1'), model.requests])).not.toContain('sk-1')
  })

  test('are checked like those of the model: what does not fit is a failed result, and the tool does not run', async () => {
    let runs = 0
    const pay = defineTool({ name: 'pay', description: 'Pays.', parameters, handler: () => String((runs += 1)) })
    const wrong: WrapToolCall = ({ args }, next) => next({ ...args, n: 'many' })
    const model = new ScriptedModel().calls('pay', { n: 1 }).says('Done.')
    const result = await harnessOf({ model, tools: [pay], wrapToolCall: [wrong] }).run('Go.')
    const { ok, content, metadata } = envelopeIn(result.toolCallRecords[0])
    expect([ok, runs, metadata['error_type']]).toEqual([false, 0, 'ValidationError'])
    expect(content).toContain('- n: ')
  })
})

test('a hook after a call can say where its result is from', async () => {
  const untrusted = defineExtension({
    name: 'untrusted',
    hooks: [{ event: 'after_tool_call', handler: () => ({ source: { kind: 'web', name: 'marked' } }) }],
  })
  const model = new ScriptedModel().calls('look').says('Done.')
  const result = await harnessOf({ model, tools: [tool('look')], use: [untrusted] }).run('Go.')
  expect(result.transcript[2]).toMatchObject({ role: 'tool', source: { kind: 'web', name: 'marked' } })
  const odd = { event: 'after_tool_call', handler: () => ({ source: { kind: 'moon' } }) } as unknown as Hook
  const events = await eventsOf(
    harnessOf({
      ...{ model: new ScriptedModel().calls('look').says('Done.'), tools: [tool('look')] },
      use: [defineExtension({ name: 'odd', hooks: [odd] })],
    }).stream('Go.'),
  )
  expect(ofKind(events, 'hook_failed')[0]?.message).toContain('`source.kind`')
})
