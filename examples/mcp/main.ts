// A harness that uses an MCP server. Here the server is another harness with its own model and tool: ./server.ts.
//   npm run example -- mcp
import { fileURLToPath } from 'node:url'
import { Harness } from 'thinharness'
import { mcpStdio } from 'thinharness/mcp'

await using harness = new Harness({
  mcpServers: [
    mcpStdio({
      id: 'warehouse',
      command: process.execPath,
      args: [fileURLToPath(new URL('server.js', import.meta.url))],
      toolPrefix: 'warehouse',
      // The server receives only these environment variables and a few common ones.
      env: { THINHARNESS_MODEL: process.env['THINHARNESS_MODEL'] ?? '' },
      required: true,
    }),
  ],
})
console.log(String(await harness.describe()))

const stream = harness.stream('Do we have Assam? If not, ask the warehouse when it arrives.')
for await (const event of stream) {
  if (event.kind === 'tool_call_started') console.log(`→ ${event.toolName} ${event.arguments}`)
  if (event.kind === 'tool_progress') console.log(`  ${JSON.stringify(event.update)}`)
}
console.log((await stream.result).text)
