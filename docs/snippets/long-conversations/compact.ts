import { Harness } from 'thinharness'
import { compact } from 'thinharness/context'

await using harness = new Harness({
  model: 'openai:gpt-5.5',
  root: '.',
  use: [compact()],
})
console.log((await harness.run('Find out why the tests of this project are slow.')).text)
