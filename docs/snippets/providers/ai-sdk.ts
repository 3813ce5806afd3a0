import { createOpenAI } from '@ai-sdk/openai'
import { Harness } from 'thinharness'
import { fromAiSdk } from 'thinharness/providers'

const provider = createOpenAI()
const model = fromAiSdk(provider('gpt-5.5'), { reasoningEffort: 'low' })
await using harness = new Harness({ model })
console.log((await harness.run('Name three rivers in Kenya.')).text)
