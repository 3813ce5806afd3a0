import assert from 'node:assert/strict'
import { Harness } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { z } from 'zod'

using model = new ScriptedModel().answers({ city: 'Nairobi', confidence: 0.9 })
await using harness = new Harness({ model, outputType: z.object({ city: z.string(), confidence: z.number() }) })

const { output } = await harness.run('Which city is meant?')
assert.equal(output.city, 'Nairobi')
