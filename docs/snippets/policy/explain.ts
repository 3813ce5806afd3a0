import { explain, fromJson } from 'thinharness/policy'

const rules = fromJson(
  '[{ "decision": "allow", "command": "git status *" }, { "decision": "deny", "command": "rm *" }]',
)

for (const command of ['git status --short', 'git status; make', 'git status > out', 'sudo rm -rf build']) {
  const { decision, step } = explain(rules, { tool: 'bash', args: { command } })
  console.log(`${command}: ${decision ?? 'no opinion'} (${step})`)
}
