import { Harness } from 'thinharness'
import { z } from 'zod'

const outputType = z.object({ title: z.string(), steps: z.array(z.string()) })

await using harness = new Harness({ model: 'openai:gpt-5.5', outputType })
const stream = harness.stream('How is tea made?', { deltas: true })

let latest = ''
for await (const event of stream) {
  if (event.kind === 'output_delta') latest = JSON.stringify(event.output)
}
const { output } = await stream.result

console.log(latest === JSON.stringify(output), output.steps.length)
