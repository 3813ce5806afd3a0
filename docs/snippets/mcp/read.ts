import { mcpStdio } from 'thinharness/mcp'

await using server = mcpStdio({
  id: 'everything',
  command: 'npx',
  args: ['-y', '@modelcontextprotocol/server-everything'],
})

for (const { uri, name } of await server.resources.list()) console.log(name, uri)
const { messages } = await server.prompts.get('args-prompt', { city: 'Rome' })
console.log(messages)
