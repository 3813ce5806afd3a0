// Research in steps that write files: search, fetch, one prompt per page in parallel, a report.
//   npm run example -- research
import { researchHarness } from './harness.js'

await using harness = researchHarness()

const stream = harness.stream('How is oolong stored best? Search, read the results, and write report.md.')
for await (const event of stream) {
  if (event.kind === 'tool_call_started') console.log(`→ ${event.toolName}`)
  if (event.kind === 'tool_call_completed') console.log(`← ${event.ok ? 'done' : (event.message ?? 'failed')}`)
}
const { text, usage } = await stream.result
console.log(`${text}\n${usage.modelRequests} requests, ${usage.children.modelRequests} by parallel_llm`)
