import { fileLog, Harness, HarnessError } from 'thinharness'
import { localTraces } from 'thinharness/tracing'

await using harness = new Harness({
  model: 'anthropic:claude-sonnet-5',
  root: './notes',
  log: fileLog('./runs'),
  tracing: [localTraces({ dir: './traces' })],
})
console.log(String(await harness.describe()))
try {
  const { runId, text, usage } = await harness.run('What is due this week?')
  console.log(`${runId}: ${usage.modelRequests} requests, ${usage.costUsd ?? 0} $\n${text}`)
} catch (error) {
  if (!(error instanceof HarnessError)) throw error
  console.error(error.code, error.run?.runId, error.message)
}
