import { resolve } from 'node:path'
import type { ToolContext, ToolOutcome, ToolReach, ToolSpec } from '#core/tools/tool-spec.js'
import { failedOutcome } from './file-failure.js'
import { fileToolLimits } from './options.js'
import type { FileToolOptions } from './options.js'
import { shownPath } from './path-text.js'
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

const OPTIONS = Symbol('options')

/** The options of a tool for files; those of the defaults for any other tool. */
export function fileOptionsOf(tool: ToolSpec | undefined): FileToolOptions {
  return (tool as { readonly [OPTIONS]?: FileToolOptions } | undefined)?.[OPTIONS] ?? DEFAULTS
}

const DEFAULTS: FileToolOptions = {}

/** A tool that works in a workspace. Failures of the file tools become failed results for the model. */
export function fileTool<Arguments>(options: FileToolOptions, { run, ...spec }: FileToolSpec<Arguments>): ToolSpec {
  const writes = spec.annotations?.readOnly !== true
  const { maxReadChars, maxToolChars } = fileToolLimits(options)
  const tool: ToolSpec & { readonly [OPTIONS]: FileToolOptions } = {
    ...spec,
    [OPTIONS]: options,
    // The tools have bounds of their own, in characters that may be two units each, without their notes.
    maxOutputChars: 2 * Math.max(maxReadChars, maxToolChars) + 20_000,
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
  return tool
}

function fileReach(
  { root, readPaths, writePaths }: FileToolOptions,
  { reads, writes }: { readonly reads: boolean; readonly writes: boolean },
): ToolReach {
  const within = (paths: readonly string[] = ['.']): readonly string[] =>
    root === undefined ? paths : paths.map((path) => resolve(root, path))
  return { ...(reads && { reads: within(readPaths) }), ...(writes && { writes: within(writePaths) }) }
}
