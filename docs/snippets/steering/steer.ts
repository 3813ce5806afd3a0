import { Harness, inputPort } from 'thinharness'

await using harness = new Harness({ model: 'openai:gpt-5.5', root: './notes' })

const input = inputPort()
const stream = harness.stream('Summarize every note.', { input })
void input.send('Only the parts about deadlines.')
console.log((await stream.result).text)

console.log(`${input.close().length} messages arrived too late.`)
