import { defineTool } from 'thinharness'
import { z } from 'zod'

export const callTool = defineTool({
  name: 'call_tool',
  description: 'Calls a tool by its name.',
  parameters: z.object({ name: z.string(), arguments: z.record(z.string(), z.json()) }),
  resolve: (call) => call,
  handler: ({ name }) => `\`${name}\` cannot be called like this.`,
})
