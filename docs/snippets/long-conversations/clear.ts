import { Harness } from 'thinharness'
import { clearResults } from 'thinharness/context'

await using harness = new Harness({
  model: 'anthropic:claude-sonnet-5',
  root: '.',
  use: [clearResults()],
})
console.log((await harness.run('Read every file of this project and list the unused exports.')).text)
