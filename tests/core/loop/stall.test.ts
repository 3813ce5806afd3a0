import { describe, expect, test } from 'vitest'
import { Harness } from 'thinharness'
import type { HarnessOptions } from 'thinharness'
import type { StallOptions } from '#contracts/limits.js'
import { ScriptedModel } from 'thinharness/testing'
import { eventsOf, failureOf, harnessOf, ofKind, tool } from '../../harness/support.js'

/** A model that calls, turn by turn, what the list says, and answers when it is told not to call. */
function calling(...turns: readonly [name: string, args: object][]): ScriptedModel {
  return new ScriptedModel().always(({ options, turn }) => {
    const [name, args] = turns[turn % turns.length] ?? ['', {}]
    return options.toolChoice === 'none' ? 'What I have.' : { calls: [{ name, arguments: JSON.stringify(args) }] }
  })
}

const reads = { annotations: { readOnly: true } }
const find = tool('find', () => 'Nothing found.', reads)
const look = tool('look', () => 'Nothing to see.', reads)

function watched(model: ScriptedModel, stall: boolean | StallOptions, options: HarnessOptions = {}): Harness {
  return harnessOf({ model, stall, tools: [find, look], ...options })
}

describe('loop detection (`stall`)', () => {
  test('a run without progress is warned, then asked to answer without tools', async () => {
    const model = calling(['find', { q: 'deadline' }])
    const stream = watched(model, true).stream('Go.')
    const events = await eventsOf(stream)
    expect(await stream.result).toMatchObject({ text: 'What I have.', usage: { modelRequests: 7 } })
    const content =
      'The last 3 turns have brought nothing new: the same calls, or calls like them, with the same results. Do something else, or answer with what you have.'
    const closing = 'The last calls have brought nothing new. Answer now with what you have, without tools.'
    expect(ofKind(events, 'limit_warning').map((event) => [event.limitKind, event.content])).toEqual([
      ['stall', content],
      ['stall', closing],
    ])
    expect(ofKind(events, 'tool_call_completed').map(({ stale }) => stale)).toEqual([
      undefined,
      ...Array<true>(5).fill(true),
    ])
  })

  test('it can be enabled or disabled for one run', async () => {
    const circling = (): ScriptedModel => calling(['find', { q: 'deadline' }])
    const limits = { modelRequests: 6 }
    const watchedOnce = harnessOf({ model: circling(), tools: [find], limits })
    const once = await watchedOnce.run('Go.', { stall: { noticeAfter: null, answerAfter: 1 } })
    expect([once.text, once.usage.modelRequests]).toEqual(['What I have.', 3])
    expect((await failureOf(watchedOnce.run('Go.'))).run.usage.modelRequests).toBe(6)
    const leftAlone = watched(circling(), { answerAfter: 1 }, { limits })
    expect((await failureOf(leftAlone.run('Go.', { stall: false }))).run.usage.modelRequests).toBe(6)
    expect(() => watchedOnce.stream('Go.', { stall: { stopAfter: 0 } })).toThrow('`stall.stopAfter`')
  })

  test('the run is ended if that does not help', async () => {
    const model = new ScriptedModel().always(() => ({ calls: [{ name: 'find', arguments: '{}' }] }))
    const error = await failureOf(watched(model, { noticeAfter: null, answerAfter: null, stopAfter: 2 }).run('Go.'))
    expect([error.code, error.message]).toEqual([
      'limit_reached',
      'The run was stopped: 2 turns in a row brought nothing new.',
    ])
    expect(error.run.usage.toolCalls).toBe(3)
    const stubborn = await failureOf(watched(model, true).run('Go.'))
    expect([stubborn.code, stubborn.run.usage.toolCalls]).toEqual(['limit_reached', 9])
  })

  test.each<[string, [string, object][], number | null]>([
    [
      'the same call under small changes',
      [
        ['find', { q: 'Deadline' }],
        ['find', { q: 'deadline' }],
        ['find', { q: '"deadline"' }],
      ],
      7,
    ],
    [
      'back and forth between two tools',
      [
        ['find', { q: 'x1' }],
        ['look', { at: 'home' }],
      ],
      8,
    ],
    ['unknown tools', [['nothing', { n: 1 }]], 7],
  ])('it notices %s', async (_name, turns, requests) => {
    // The retries of a tool that does not exist would end the run earlier.
    const harness = watched(calling(...turns), true, { toolRetries: 20 })
    expect((await harness.run('Go.')).usage.modelRequests).toBe(requests)
  })

  test('occasional progress prevents it, and so does an exempt tool', async () => {
    let count = 0
    const status = tool('status', () => (++count % 4 === 0 ? `step ${count}` : 'waiting'), reads)
    const model = new ScriptedModel().always(({ turn }) => (turn < 20 ? { calls: [{ name: 'status' }] } : 'Done.'))
    expect((await harnessOf({ model, stall: true, tools: [status] }).run('Go.')).usage.toolCalls).toBe(20)
    const still = tool('status', () => 'waiting', reads)
    const waits = harnessOf({ model, stall: { ignore: ['status'] }, tools: [still] })
    expect((await waits.run('Go.')).usage.toolCalls).toBe(20)
    expect((await harnessOf({ model, tools: [still] }).run('Go.')).usage.toolCalls).toBe(20)
  })

  test('a changing image is progress', async () => {
    let shots = 0
    const shot = tool(
      'shot',
      async () => {
        const { ToolResult } = await import('thinharness')
        const data = Buffer.from(`picture ${shots++}`).toString('base64')
        return new ToolResult({ content: 'A picture.', parts: [{ type: 'image', data, mediaType: 'image/png' }] })
      },
      reads,
    )
    const model = new ScriptedModel().always(({ turn }) => (turn < 10 ? { calls: [{ name: 'shot' }] } : 'Done.'))
    expect((await harnessOf({ model, stall: true, tools: [shot] }).run('Go.')).usage.toolCalls).toBe(10)
  })

  test.each<[string, unknown, string]>([
    [
      'a step of 0',
      { stopAfter: 0 },
      'Expected `stall.stopAfter` of `Harness` to be a whole number from 1 up or `null`, got `0`.',
    ],
    ['an unknown step', { stop: 3 }, 'Unknown option of `Harness`: `stall.stop`.'],
    ['a text', 'yes', 'Expected `stall` of `Harness` to be a boolean or an object, got `yes`.'],
  ])('it rejects %s', (_name, stall, message) => {
    expect(() => new Harness({ stall: stall as boolean })).toThrow(message)
  })
})
