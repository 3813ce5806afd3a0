import { Harness } from 'thinharness'
import { mcpStdio } from 'thinharness/mcp'
import { policy } from 'thinharness/policy'
import type { Rule } from 'thinharness/policy'

export const browser = mcpStdio({
  id: 'browser',
  command: 'npx',
  args: ['-y', '@playwright/mcp@latest', '--headless', '--isolated'],
})

/** Pages may be opened and looked at; clicks, input and all else are asked about. */
const rules: Rule[] = [
  { decision: 'ask', category: 'mcp' },
  { decision: 'allow', tool: ['browser_navigate', 'browser_snapshot', 'browser_take_screenshot'] },
]

export const harness = new Harness({
  model: 'anthropic:claude-sonnet-5',
  mcpServers: [browser],
  use: [policy(rules)],
})
