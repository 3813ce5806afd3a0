import { Harness } from 'thinharness'
import { limited } from 'thinharness/models'

const model = limited('openai:gpt-5.5', { concurrency: 8, requestsPerMinute: 60, tokensPerMinute: 200_000 })
export const harness = new Harness({ model })
