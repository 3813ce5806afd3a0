import { appendFile } from 'node:fs/promises'
import type { Hook } from 'thinharness'

/** Appends one line per call of these tools, with its outcome. */
export function audit(file: string, tools: readonly string[]): Hook {
  return {
    event: 'after_tool_call',
    tools,
    agents: ['*'],
    handler: async ({ callId, toolName, envelope: { ok, content, metadata }, durationMs }) => {
      const row = { callId, toolName, ok, chars: content.length, metadata, durationMs: Math.round(durationMs) }
      await appendFile(file, `${JSON.stringify(row)}\n`)
    },
  }
}
