import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { Harness } from 'thinharness'
import { anthropic, openai } from 'thinharness/providers'

const models = [openai('gpt-5.5', { client: new OpenAI() }), anthropic('claude-sonnet-5', { client: new Anthropic() })]
for (const model of models) {
  await using harness = new Harness({ model })
  console.log(`${model.provider}: ${(await harness.run('Say hello.')).text}`)
}
