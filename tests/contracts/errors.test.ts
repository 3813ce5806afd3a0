import { inspect } from 'node:util'
import { Harness, HarnessError } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { expect, test } from 'vitest'
import { failureOf } from '../harness/support.js'

test('an error of a run is shown as its code, message, run and place, not with its transcript', async () => {
  await using harness = new Harness({ model: new ScriptedModel().fails(new Error('The line is down.')) })
  const error = await failureOf(harness.run('Go.', { runId: 'run_1' }))

  const lines = inspect(error).split('\n')

  expect(lines.slice(0, 2)).toEqual([`HarnessError [${error.code}]: ${error.message}`, '    run run_1'])
  expect(lines.length).toBeLessThanOrEqual(4)
})

test('an error that nobody catches is printed by Node with its code, message and run, and without its transcript', async () => {
  await using harness = new Harness({ model: new ScriptedModel().fails(new Error('The line is down.')) })
  const error = await failureOf(harness.run('A secret question.', { runId: 'run_1' }))

  // As Node prints it.
  const printed = inspect(error, { customInspect: false, depth: 5 })

  expect(printed).toMatch(/^HarnessError: .*The line is down\.[^]*\n {4}run run_1[^]*code: 'error'/)
  expect(printed).not.toMatch(/transcript|secret/)
  expect(error.run.transcript).toHaveLength(1)
})

test('an error names the line of the host that made it, and its cause', () => {
  const error = new HarnessError('store_failure', 'The log cannot be written.', { cause: new Error('ENOSPC') })
  expect(inspect(error).split('\n')).toEqual([
    'HarnessError [store_failure]: The log cannot be written.',
    '    cause: ENOSPC',
    expect.stringMatching(/^ {4}at .*errors\.test\.ts/),
  ])
})
