import { fileURLToPath } from 'node:url'
import { defineTool } from 'thinharness'
import { mcpStdio } from 'thinharness/mcp'
import type { McpServer } from 'thinharness/mcp'
import { z } from 'zod'

const ENTRIES = [
  { source: 'Yearbook 1987, page 41', text: 'Trials in cellars: oolong in opaque tins kept its aroma for 25 months.' },
  { source: 'Letter of 1994', text: 'Our members store green tea in glass, and are sorry for it.' },
] as const

/** The tool of the server: entries of the archive that have all of the words. */
export const find = defineTool({
  name: 'find',
  description: 'Find entries in the archive of the tea society that have all of these words.',
  parameters: z.object({ words: z.array(z.string().min(3)).min(1).max(4) }),
  annotations: { readOnly: true },
  handler: ({ words }) =>
    ENTRIES.filter(({ text }) => words.every((word) => text.toLowerCase().includes(word.toLowerCase()))),
})

/** The server as a client sees it: a program that is started when the first of its tools is needed. */
export function archive(): McpServer {
  return mcpStdio({
    id: 'archive',
    command: process.execPath,
    args: [...process.execArgv, fileURLToPath(new URL('server.js', import.meta.url))],
    toolPrefix: 'archive',
  })
}
