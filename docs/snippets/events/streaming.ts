import { Harness } from 'thinharness'

await using harness = new Harness({ model: 'openai:gpt-5.5', root: './notes' })
const stream = harness.stream('What was decided in the last meeting?', { deltas: true })

for await (const event of stream) {
  if (event.kind === 'text_delta') process.stdout.write(event.text)
  if (event.kind === 'tool_call_started') console.log(`→ ${event.toolName} ${event.arguments}`)
  if (event.kind === 'tool_call_completed') console.log(event.ok ? '← done' : `← ${event.message}`)
}

const { usage } = await stream.result
console.log(`\n${usage.inputTokens} tokens in, ${usage.outputTokens} out`)
