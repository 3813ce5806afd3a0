// A harness that uses an MCP server: here ./server.ts, which is a harness itself, with a model and a tool of its own.
//   npm run example -- mcp
import { fileURLToPath } from 'node:url'
import { Harness } from 'thinharness'
import { mcpStdio } from 'thinharness/mcp'

await using harness = new Harness({
  builtinTools: [],
  mcpServers: [
    mcpStdio({
      id: 'warehouse',
      command: process.execPath,
      args: [fileURLToPath(new URL('server.js', import.meta.url))],
      toolPrefix: 'warehouse',
      // A server gets the variables that are named for it, and no other.
      env: { THINHARNESS_MODEL: process.env['THINHARNESS_MODEL'] ?? '' },
      required: true,
    }),
  ],
})
console.log(String(await harness.describe()))

const stream = harness.stream('Is there Assam? If not, ask the warehouse when it comes.')
for await (const event of stream) {
  if (event.kind === 'tool_call_started') console.log(`→ ${event.toolName} ${event.arguments}`)
  if (event.kind === 'tool_progress') console.log(`  ${JSON.stringify(event.update)}`)
}
console.log((await stream.result).text)
