import { Harness } from 'thinharness'

await using harness = new Harness({
  model: 'anthropic:claude-sonnet-5',
  root: './notes',
  limits: { toolCalls: 1 },
  onLimit: 'answer',
})

const { text, usage } = await harness.run('Which notes mention a deadline?')
console.log(text)
console.log(`${usage.toolCalls} tool call`)
