// A harness as an MCP server over stdio. MCP clients, such as editors, start it as a program.
import { Harness } from 'thinharness'
import { serveMcp } from 'thinharness/mcp'
import { warehouse } from './warehouse.js'

console.error(`The warehouse uses the model ${process.env['THINHARNESS_MODEL'] ?? '(none)'}.`)

await using harness = new Harness({ tools: [warehouse], limits: { modelRequests: 8 } })
const serving = await serveMcp(harness, {
  transport: 'stdio',
  name: 'warehouse',
  description: 'Answers questions about current and future stock.',
  tools: [warehouse],
})
await serving.closed
