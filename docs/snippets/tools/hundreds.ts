import { defineTool, Harness } from 'thinharness'
import { mcpHttp } from 'thinharness/mcp'
import { deferred, toolSearch } from 'thinharness/tools'
import { z } from 'zod'
import { lookupOrder } from './lookup-order.js'

const reports = ['sales', 'returns', 'stock'].map((subject) =>
  defineTool({
    name: `report_${subject}`,
    description: `Reports ${subject} of one month.`,
    parameters: z.object({ month: z.string() }),
    examples: [{ month: '2026-11' }],
    annotations: { readOnly: true },
    handler: ({ month }) => `No ${subject} in ${month}.`,
  }),
)
const github = mcpHttp({ id: 'github', url: 'https://mcp.example.com/github' })

export const harness = new Harness({
  model: 'anthropic:claude-sonnet-5',
  tools: [lookupOrder, ...reports.map((report) => deferred(report))],
  mcpServers: [deferred(github, { except: ['search_issues'] })],
  use: [toolSearch({ about: 'reports on the shop, and everything on GitHub' })],
})
