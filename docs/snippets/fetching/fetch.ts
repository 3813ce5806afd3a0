import { Harness } from 'thinharness'
import { fetchUrl } from 'thinharness/tools'

await using harness = new Harness({
  model: 'anthropic:claude-sonnet-5',
  root: './notes',
  tools: [fetchUrl({ allowHosts: ['nodejs.org', '*.nodejs.org'], maxChars: 20_000 })],
})
console.log((await harness.run('Which Node versions are supported? See https://nodejs.org/en/about.')).text)
