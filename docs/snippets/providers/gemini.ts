import { Harness } from 'thinharness'
import { gemini } from 'thinharness/providers'

const model = gemini('gemini-3-pro', { reasoningEffort: 'low', maxOutputTokens: 8192 })
await using harness = new Harness({ model, root: './notes' })

const { text, usage } = await harness.run('What was decided in the last meeting?')
console.log(text)
console.log(`${usage.reasoningTokens} reasoning tokens`)
