import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Budget, memoryLog } from 'thinharness'
import type { Extension, Model, RunEvent } from 'thinharness'
import { clearResults } from 'thinharness/context'
import { ScriptedModel } from 'thinharness/testing'
import { fromUIMessages } from 'thinharness/ui'
import { lookingFor, windowedModel } from '../../extensions/context/windowed-model.js'
import { eventsIn } from '../../run/resume/pause-support.js'
import { collect } from '../../support/collect.js'
import { failureOf, harnessOf, ofKind, ticks, told, tool } from '../../harness/support.js'

/** Nobody awaits what is returned: a rejection of it must not end the process either. */
const later = (): never => Promise.reject(new Error('Too late.')) as never
const AT_ONCE = /at once, got a promise/

const unhandled: unknown[] = []
const note = (reason: unknown): void => void unhandled.push(reason)
beforeAll(() => void process.on('unhandledRejection', note))
afterAll(() => void process.off('unhandledRejection', note))

describe('a promise in a place where none is waited for is refused, and says where', () => {
  test('`redact` of an extension: nothing is shown, and the run fails', async () => {
    const masks: Extension = { name: 'mask', redact: later }
    const { events, thrown } = await told(
      harnessOf({ model: new ScriptedModel().says('x'), use: [masks] }).stream('Go.'),
    )
    expect(ofKind(events, 'model_message')).toEqual([])
    expect(thrown).toMatchObject({ code: 'hook_failed', message: expect.stringMatching(AT_ONCE) as string })
  })

  test('`output` of an extension: nothing is shown, and the run fails', async () => {
    const harness = harnessOf({ model: new ScriptedModel().says('x'), use: [{ name: 'mask', output: later }] })
    const { events, thrown } = await told(harness.stream('Go.'))
    expect(ofKind(events, 'model_message')).toEqual([])
    expect(thrown).toMatchObject({ message: expect.stringMatching(AT_ONCE) as string })
  })

  test('`startRun` of a tracing: the run is not traced, and its process is warned', async () => {
    const warning = once(process, 'warning')
    await harnessOf({ model: new ScriptedModel().says('x'), tracing: [{ startRun: later }] }).run('Go.')
    expect(String((await warning)[0])).toMatch(AT_ONCE)
  })

  test('`deps`', async () => {
    const harness = harnessOf({ model: new ScriptedModel().says('x'), deps: later })
    expect((await failureOf(harness.run('Go.'))).message).toMatch(AT_ONCE)
  })

  test.each([
    ['nothing', undefined],
    ['a promise', Promise.resolve({})],
  ])('`openSession` of a model that gives %s: the error names the model', async (_name, session) => {
    const { provider, id, capabilities } = new ScriptedModel()
    const model = { provider, id, capabilities, openSession: () => session } as unknown as Model
    const failed = await failureOf(harnessOf({ model }).run('Go.'))
    expect(failed.message).toMatch(/^Model `scripted:.*` returned no session: expected `openSession\(\)`/)
  })

  test('`resolve` of a tool', async () => {
    const standIn = tool('any', () => 'x', { resolve: later })
    const model = new ScriptedModel().calls('any', {}).says('x')
    expect((await failureOf(harnessOf({ model, tools: [standIn] }).run('Go.'))).message).toMatch(
      /`resolve` of tool `any` to return its result at once/,
    )
  })

  test('`onProgress` of `map`', async () => {
    const harness = harnessOf({ model: new ScriptedModel().always('x') })
    const rows = harness.map(['a'], (prompt) => ({ prompt }), { budget: new Budget({ costUsd: 1 }), onProgress: later })
    await expect(collect(rows)).rejects.toThrow(AT_ONCE)
  })

  test('`onDifference` of `replay`', async () => {
    const log = memoryLog()
    const model = new ScriptedModel().always('x')
    await harnessOf({ model, instructions: 'A.', log }).run('Go.', { runId: 'run_1' })
    const events: readonly RunEvent[] = await eventsIn(log, 'run_1')
    const other = harnessOf({ model, instructions: 'B.' })
    const replaying = other.replay(events, { allow: ['instructions'], onDifference: later })
    expect((await failureOf(replaying)).code).toBe('replay_mismatch')
  })

  test('`pinned` of a view policy', async () => {
    const model = windowedModel({ window: 5_000, reply: lookingFor(12) })
    const look = tool('look', () => 'word '.repeat(300))
    const harness = harnessOf({ model, tools: [look], use: [clearResults({ pinned: later })] })
    const { events } = await told(harness.stream('Go.'))
    expect(ofKind(events, 'hook_failed')[0]?.message).toMatch(AT_ONCE)
  })

  test('`allowUrl` of handlers: the link is not let through', () => {
    const url = 'https://example.test/a.png'
    const message = { id: 'm1', role: 'user', parts: [{ type: 'file', mediaType: 'image/png', url }] }
    expect(() => fromUIMessages([message], { allowUrl: later })).toThrow(AT_ONCE)
  })

  test('without an unhandled rejection', async () => {
    await ticks()
    expect(unhandled).toEqual([])
  })
})
