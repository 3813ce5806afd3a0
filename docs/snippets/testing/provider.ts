import assert from 'node:assert/strict'
import { Harness } from 'thinharness'
import { openai } from 'thinharness/providers'
import { scriptedProvider } from 'thinharness/testing'

await using provider = await scriptedProvider()
provider.fails(503).says('Hello.')

const model = openai('gpt-5.5', { apiKey: 'test', baseUrl: provider.url.responses })
await using harness = new Harness({ model })
const result = await harness.run('Hi.')

assert.equal(result.text, 'Hello.')
