import { Harness, inputPort } from 'thinharness'

await using harness = new Harness({ model: 'openai:gpt-5.5', root: './notes' })

const input = inputPort()
const stream = harness.stream('Summarize every note.', { input })
for await (const event of stream) {
  if (event.kind === 'tool_call_completed') input.send('Only what is about deadlines.')
  if (event.kind === 'model_message') console.log(event.text)
}

console.log(`${input.close().length} messages came too late.`)
