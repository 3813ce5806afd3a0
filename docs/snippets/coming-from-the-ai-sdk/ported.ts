import { defineTool, Harness } from 'thinharness'
import { z } from 'zod'

const weather = defineTool({
  name: 'weather',
  description: 'The weather in a city.',
  parameters: z.object({ city: z.string() }),
  handler: ({ city }) => ({ city, celsius: 21 }),
})

await using harness = new Harness({
  model: 'openai:gpt-5.5',
  instructions: 'Be brief.',
  tools: [weather],
  limits: { modelRequests: 5 },
})

const { text, usage } = await harness.run('Is it warm in Nairobi?')
console.log(text, usage.modelRequests)
