import { expect, test } from 'vitest'
import { memoryLog } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { eventsIn } from '../../../run/resume/pause-support.js'
import { failureOf, harnessOf, kinds, tool } from '../../../harness/support.js'

test('a reply with more than 1,000 calls ends the run before any of them is looked at, and costs what it cost', async () => {
  let looked = 0
  const look = tool('look', () => void (looked += 1))
  const calls = Array.from({ length: 100_000 }, () => ({ name: 'look' }))
  const log = memoryLog()
  const harness = harnessOf({ model: new ScriptedModel().replies({ calls }).says('Sorry.'), tools: [look], log })
  const failed = await failureOf(harness.run('Go.', { runId: 'run_1' }))
  expect([failed.code, looked]).toEqual(['unexpected_model_behavior', 0])
  expect(failed.message).toContain('100000 tool calls in one reply: at most 1000 are taken')
  expect(failed.run.usage).toMatchObject({ modelRequests: 1, inputTokens: 10, toolCalls: 0 })
  const events = await eventsIn(log, 'run_1')
  expect(kinds(events)).toBe('run_started model_request_started model_message run_failed')
  expect(JSON.stringify(events).length).toBeLessThan(10_000)
  expect((await harness.retry('run_1')).text).toBe('Sorry.')
})

test('a reply with 1,000 calls runs them all', async () => {
  let ran = 0
  const look = tool('look', () => void (ran += 1))
  const calls = Array.from({ length: 1000 }, () => ({ name: 'look' }))
  const model = new ScriptedModel().replies({ calls }).says('Done.')
  expect((await harnessOf({ model, tools: [look] }).run('Go.')).text).toBe('Done.')
  expect(ran).toBe(1000)
})
