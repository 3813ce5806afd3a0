import { Harness } from 'thinharness'
import { z } from 'zod'

await using harness = new Harness({
  model: 'anthropic:claude-sonnet-5',
  root: './notes',
  subagents: [
    {
      name: 'counter',
      description: 'Counts things in the notes.',
      tools: 'inherit',
      outputType: z.object({ count: z.number() }),
      limits: { modelRequests: 8, timeMs: 60_000 },
    },
    { name: 'second-opinion', description: 'Reviews our findings with fresh eyes.', history: 'fork' },
  ],
})

const stream = harness.stream('How many notes mention a deadline? Ask for a second opinion.')
for await (const event of stream) {
  if (event.kind === 'run_completed' && event.agentName !== null)
    console.log(`${event.agentName}: ${JSON.stringify(event.result.output)}`)
}
const { text, usage } = await stream.result
console.log(`${text} (${usage.modelRequests} requests, ${usage.children.modelRequests} by subagents)`)
