import { Harness } from 'thinharness'
import { summarise } from 'thinharness/context'

await using harness = new Harness({
  model: 'anthropic:claude-sonnet-5',
  root: '.',
  use: [summarise({ model: 'anthropic:claude-haiku-4-5', instructions: 'Keep every file path that was changed.' })],
})
console.log((await harness.run('Move the tests of this project to vitest.')).text)
