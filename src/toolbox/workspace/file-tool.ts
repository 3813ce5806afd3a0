import type { ToolOutcome } from '../../tools/outcome.js'
import type { ToolContext, ToolSpec } from '../../tools/spec.js'
import { failedOutcome } from './failure.js'
import type { FileToolOptions } from './options.js'
import { shownPath } from './path-text.js'
import { fileReach } from './reach.js'
import { workspaceOf } from './workspace.js'
import type { Workspace } from './workspace.js'

export interface FileCall<Arguments> {
  readonly workspace: Workspace
  /** Checked against the tool's schema by the tool boundary. */
  readonly args: Arguments
  readonly context: ToolContext
}

export interface FileToolSpec<Arguments> extends Omit<ToolSpec, 'call'> {
  readonly run: (call: FileCall<Arguments>) => Promise<ToolOutcome>
}

/** A tool that works in a workspace: what it throws of the file tools' failures becomes a failed result for the model. */
export function fileTool<Arguments>(options: FileToolOptions, { run, ...spec }: FileToolSpec<Arguments>): ToolSpec {
  const writes = spec.annotations?.readOnly !== true
  return {
    ...spec,
    reach: fileReach(options, { reads: spec.name !== 'write', writes }),
    async call(args, context) {
      const workspace = workspaceOf(options, context.root)
      context.signal.throwIfAborted()
      try {
        return await run({ workspace, args: args as Arguments, context })
      } catch (error) {
        context.signal.throwIfAborted()
        return failedOutcome(error, shownPath(typeof args['path'] === 'string' ? args['path'] : '.'))
      }
    },
  }
}
