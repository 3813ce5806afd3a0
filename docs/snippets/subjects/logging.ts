import { defineExtension } from 'thinharness'
import type { Extension } from 'thinharness'

/** A logger such as pino, winston or the console. */
export interface Logger {
  info(fields: object, message: string): void
}

/** Logs each model request and each tool call, also those of subagents. */
export function logged(logger: Logger): Extension {
  return defineExtension({
    name: 'logged',
    async wrapModelCall(call, next) {
      const started = performance.now()
      const turn = await next(call)
      const { model, usage } = turn.entry
      logger.info({ runId: call.runId, model, usage, ms: performance.now() - started }, 'model request')
      return turn
    },
    hooks: [
      {
        event: 'after_tool_call',
        agents: ['*'],
        handler: ({ runId, toolName, arguments: json, output, durationMs }) => {
          logger.info({ runId, toolName, arguments: json, output, ms: durationMs }, 'tool call')
          return undefined
        },
      },
    ],
  })
}
