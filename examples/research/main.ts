// Research in steps that leave files behind: search, fetch, one prompt a page asked at once, a report.
//   npm run example -- research
import { researchHarness } from './harness.js'

await using harness = researchHarness()

const stream = harness.stream('How is oolong stored best? Search, read what you find, and write report.md.')
for await (const event of stream) {
  if (event.kind === 'tool_call_started') console.log(`→ ${event.toolName}`)
  if (event.kind === 'tool_call_completed') console.log(`← ${event.ok ? 'done' : (event.message ?? 'failed')}`)
}
const { text, usage } = await stream.result
console.log(`${text}\n${usage.modelRequests} requests, and ${usage.children.modelRequests} of parallel_llm`)
