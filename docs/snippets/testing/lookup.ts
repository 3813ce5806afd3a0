import assert from 'node:assert/strict'
import { Harness } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { lookupOrder } from '../tools/lookup-order.js'

const model = new ScriptedModel().calls('lookup_order', { id: '1042' }).says('It is in transit.')
await using harness = new Harness({ model, tools: [lookupOrder] })

const result = await harness.run('Where is order 1042?')

assert.equal(result.text, 'It is in transit.')
assert.deepEqual(model.heard, [
  { kind: 'start', prompt: 'Where is order 1042?' },
  {
    kind: 'tool_outputs',
    outputs: [{ callId: 'call_1', ok: true, content: 'in transit, promised for 2026-11-18' }],
  },
])
model.assertDone()
