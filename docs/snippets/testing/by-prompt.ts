import assert from 'node:assert/strict'
import { Harness } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'

// Each run follows a script of its own, chosen by its prompt.
const model = ScriptedModel.each(({ heard }) =>
  new ScriptedModel().says(heard.kind === 'start' && heard.prompt === 'One?' ? '1' : '2'),
)
await using harness = new Harness({ model })

const results = await Promise.all([harness.run('One?'), harness.run('Two?')])
assert.deepEqual(
  results.map(({ text }) => text),
  ['1', '2'],
)
model.assertDone()
