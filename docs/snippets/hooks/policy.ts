import { Harness } from 'thinharness'
import type { Hook } from 'thinharness'

const hooks: Hook[] = [
  {
    event: 'before_tool_call',
    tools: ['write', 'edit'],
    handler: ({ arguments: args }) => (args.includes('.env') ? { cancel: 'Leave .env alone.' } : undefined),
  },
  {
    event: 'after_tool_call',
    agents: ['*'],
    timeoutMs: 1_000,
    handler: ({ output }) => ({ output: output.replace(/sk-\w+/g, '[key]') }),
  },
]

await using harness = new Harness({ model: 'anthropic:claude-sonnet-5', root: './notes', hooks })
const { text, usage } = await harness.run('Tidy up.')
console.log(`${text} ${usage.cancelledToolCalls} call cancelled, ${usage.hookFailures} hooks failed`)
