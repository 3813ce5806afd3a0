// A harness as an MCP server over stdio: what an MCP client, such as an editor, starts as a program.
import { Harness } from 'thinharness'
import { serveMcp } from 'thinharness/mcp'
import { warehouse } from './warehouse.js'

console.error(`The warehouse works with ${process.env['THINHARNESS_MODEL'] ?? 'no model'}.`)

await using harness = new Harness({ builtinTools: [], tools: [warehouse], limits: { modelRequests: 8 } })
const serving = await serveMcp(harness, {
  transport: 'stdio',
  name: 'warehouse',
  description: 'Answers questions on what is in stock, and on what will be.',
  tools: [warehouse],
})
await serving.closed
