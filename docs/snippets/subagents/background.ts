import { Harness } from 'thinharness'

await using harness = new Harness({
  model: 'anthropic:claude-sonnet-5',
  root: './notes',
  subagents: [
    {
      name: 'archivist',
      description: 'Researches a question in the archive. Takes minutes.',
      tools: 'inherit',
      background: true,
    },
  ],
})

const stream = harness.stream('Ask the archivist how this was done before, and draft a plan in the meantime.')
for await (const event of stream) {
  if (event.kind === 'background_reported') console.log(`${event.agent} has ${event.ok ? 'answered' : 'failed'}`)
}
console.log((await stream.result).text)
