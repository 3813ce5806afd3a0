import { readFile } from 'node:fs/promises'
import { Harness } from 'thinharness'

await using harness = new Harness({ model: 'google:gemini-3-pro' })
const { text } = await harness.run([
  { type: 'text', text: 'Write down what is said, word by word.' },
  { type: 'audio', data: await readFile('message.mp3', 'base64'), mediaType: 'audio/mpeg' },
])
console.log(text)
