import { Harness, HarnessError } from 'thinharness'

await using harness = new Harness({
  model: 'anthropic:claude-sonnet-5',
  root: './notes',
  limits: { modelRequests: 8, toolCalls: 20, timeMs: 60_000 },
})

try {
  const result = await harness.run('Sort the notes into folders by subject.')
  console.log(result.text)
} catch (error) {
  if (!(error instanceof HarnessError)) throw error
  console.log(`${error.code}: ${error.message}`)
  const done = error.run?.toolCallRecords.map(({ call }) => call.name) ?? []
  console.log(`Tools that had run: ${done.join(', ')}`)
}
