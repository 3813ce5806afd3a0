import type { CallToolOptions, CalledTool } from './try-tool.js'
import type { ToolSpec } from '#core/tools/tool-spec.js'

/**
 * Calls a tool outside a run, for tests and hosts: arguments are checked and repaired, and the result is normalized. `args`
 * is an object, or raw argument text. No hook, approval or time limit applies. A tool that asks a question without having
 * its answer fails with the error type `Suspended`. Does not reject.
 */
export async function callTool<Deps = unknown>(
  spec: ToolSpec<Deps>,
  args: string | object,
  options: CallToolOptions<Deps> = {},
): Promise<CalledTool> {
  const { tryTool } = await import('./try-tool.js')
  return tryTool(spec, args, options)
}
