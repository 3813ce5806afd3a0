import { readFile } from 'node:fs/promises'
import { Harness } from 'thinharness'

await using harness = new Harness({ model: 'anthropic:claude-sonnet-5' })
const { text } = await harness.run([
  { type: 'text', text: 'Does the drawing match the contract?' },
  { type: 'image', data: await readFile('drawing.png', 'base64'), mediaType: 'image/png' },
  { type: 'file', data: await readFile('contract.pdf', 'base64'), mediaType: 'application/pdf', name: 'contract.pdf' },
])
console.log(text)
