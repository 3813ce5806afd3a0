import { appendFile } from 'node:fs/promises'
import type { Hook } from 'thinharness'

/** One line for each call of these tools: what came of it, by the envelope that the model reads. */
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
