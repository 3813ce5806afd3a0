// Tasks delegated to subagents: each reads one note and returns a typed answer.
//   npm run example -- subagents
import { mkdir, writeFile } from 'node:fs/promises'
import { Harness } from 'thinharness'
import { z } from 'zod'

await mkdir('notes', { recursive: true })
await writeFile('notes/storm.md', 'The storm of October 3 held up 58 parcels. Decide on refunds by October 20.\n')
await writeFile('notes/tins.md', 'New tins arrive in spring. Nothing to decide.\n')

await using harness = new Harness({
  root: 'notes',
  builtinTools: ['list', 'read'],
  subagents: [
    {
      name: 'reader',
      description: 'Reads one note and finds the deadline in it.',
      tools: 'inherit',
      instructions: 'Read the given note and report the deadline that it mentions.',
      outputType: z.object({ note: z.string(), deadline: z.string().nullable() }),
      limits: { modelRequests: 4, timeMs: 60_000 },
    },
  ],
})

const stream = harness.stream('Which notes mention a deadline? Have a reader read each of them.')
for await (const event of stream) {
  if (event.kind === 'run_completed' && event.agentName !== null) {
    console.log(`${event.agentName}: ${JSON.stringify(event.result.output)}`)
  }
}
const { text, usage } = await stream.result
console.log(`${text}\n${usage.modelRequests} requests, ${usage.children.modelRequests} by subagents`)
