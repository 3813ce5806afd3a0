import { Harness } from 'thinharness'
import { policy } from 'thinharness/policy'
import type { Rule } from 'thinharness/policy'
import { bash } from 'thinharness/tools'

const rules: Rule[] = [
  { decision: 'allow', category: 'read' },
  { decision: 'ask', category: 'edit' },
  { decision: 'allow', path: 'drafts/**' },
  { decision: 'allow', command: 'git status *' },
  { decision: 'deny', command: 'git push *', note: 'Only people push.' },
  { decision: 'deny', path: '**/.env', id: 'secrets' },
]

await using harness = new Harness({
  model: 'anthropic:claude-sonnet-5',
  root: './notes',
  tools: [bash()],
  use: [policy(rules, { default: 'ask' })],
})
const result = await harness.run('Write a draft, then push it.')
if (result.status === 'paused')
  for (const { toolName, decision } of result.pending) console.log(toolName, decision?.rule)
else console.log(result.text)
