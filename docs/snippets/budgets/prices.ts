import { Harness } from 'thinharness'

await using harness = new Harness({
  model: 'local:qwen3',
  root: './notes',
  limits: { costUsd: 1 },
  prices: {
    models: { qwen3: { inputPerMillion: 0.1, outputPerMillion: 0.4 } },
    unknown: { inputPerMillion: 10, outputPerMillion: 50 },
  },
})

const { usage } = await harness.run('Say hello.')
console.log(`$${usage.costUsd}`)
