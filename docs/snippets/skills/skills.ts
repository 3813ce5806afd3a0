import { Harness } from 'thinharness'

await using harness = new Harness({
  model: 'anthropic:claude-sonnet-5',
  root: './project',
  skills: { dirs: ['skills', '~/.agents/skills'] },
})
console.log((await harness.run('Release version 2.1.')).text)
