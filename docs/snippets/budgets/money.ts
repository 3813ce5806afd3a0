import { Harness, HarnessError } from 'thinharness'

await using harness = new Harness({
  model: 'anthropic:claude-sonnet-5',
  root: './notes',
  limits: { costUsd: 0.25, modelRequests: 30, timeMs: 300_000 },
})

try {
  const { text, usage } = await harness.run('Which notes mention a deadline?')
  console.log(text)
  console.log(`$${usage.costUsd}`, Object.keys(usage.byModel))
} catch (error) {
  if (!(error instanceof HarnessError) || error.code !== 'limit_reached') throw error
  console.log(`${error.message} $${error.run?.usage.costUsd} spent.`)
}
