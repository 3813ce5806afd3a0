import { Harness } from 'thinharness'
import { parallelLlm } from 'thinharness/tools'
import { z } from 'zod'

await using harness = new Harness({
  model: 'anthropic:claude-sonnet-5',
  root: './notes',
  tools: [
    parallelLlm({
      model: 'anthropic:claude-haiku-5',
      outputType: z.object({ topic: z.string() }),
    }),
  ],
})

const { text } = await harness.run('Find the topic of every prompt in prompts.json and write them to topics.json.')
console.log(text)
