// Research in steps that write files: search, fetch, one prompt per page in parallel, claims that subagents check over MCP, a report.
//   npm run example -- research
import { fileLog } from 'thinharness'
import { researchHarness } from './harness.js'

// Where the command looks: `npx thinharness view last`. The file tools cannot reach it.
await using harness = researchHarness({ log: fileLog('../.thinharness/runs') })

const stream = harness.stream(
  'How is oolong stored best? Search, read the results, check each claim, and write report.md.',
)
for await (const event of stream) {
  const who = 'agentName' in event && event.agentName !== null ? `  ${event.agentName} ` : ''
  if (event.kind === 'tool_call_started') console.log(`${who}→ ${event.toolName}`)
  if (event.kind === 'tool_call_completed') console.log(`${who}← ${event.ok ? 'done' : (event.message ?? 'failed')}`)
}
const { text, usage } = await stream.result
console.log(`${text}\n${usage.modelRequests} requests, ${usage.children.modelRequests} by child runs`)
