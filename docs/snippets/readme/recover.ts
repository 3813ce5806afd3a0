import { fileLog, Harness, HarnessError } from 'thinharness'

await using harness = new Harness({ model: 'anthropic:claude-sonnet-5', root: './notes', log: fileLog('./runs') })
const runId = 'tidy-2026-11-21'

const result = await harness.run('Sort the notes into folders by subject.', { runId }).catch((error: unknown) => {
  if (error instanceof HarnessError && error.code === 'run_exists') return harness.recover(runId)
  throw error
})
console.log(result.text)
