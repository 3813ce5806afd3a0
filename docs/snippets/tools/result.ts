import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { defineTool, ModelRetry, ToolResult } from 'thinharness'
import { z } from 'zod'

export const chart = defineTool({
  name: 'chart',
  description: 'Get the chart of one quarter as an image.',
  parameters: z.object({ quarter: z.string().describe('For example 2026-Q3.') }),
  annotations: { readOnly: true },
  async handler({ quarter }, { root }) {
    if (!/^\d{4}-Q[1-4]$/.test(quarter)) throw new ModelRetry(`\`${quarter}\` is not a quarter. Write it as 2026-Q3.`)
    const image = await readFile(resolve(root, `${quarter}.png`)).catch(() => null)
    if (image === null) {
      return new ToolResult({
        ok: false,
        content: `There is no chart for ${quarter}.`,
        metadata: { error_type: 'NotFound' },
      })
    }
    return new ToolResult({
      content: `The chart for ${quarter}.`,
      metadata: { byte_count: image.length },
      parts: [{ type: 'image', data: image.toString('base64'), mediaType: 'image/png' }],
    })
  },
})
