import { Harness, ModelRetry } from 'thinharness'
import { z } from 'zod'

const known = new Set(['order-7', 'order-9'])

await using harness = new Harness({
  model: 'openai:gpt-5.5',
  outputType: z.object({ order: z.string() }),
  outputValidator({ order }) {
    if (!known.has(order)) throw new ModelRetry(`There is no ${order}. Known orders: ${[...known].join(', ')}.`)
  },
  outputRetries: 2,
})
const { output, usage } = await harness.run('Which order came late?')

console.log(output.order, usage.outputRetries)
