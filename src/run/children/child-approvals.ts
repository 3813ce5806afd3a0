import { HarnessError } from '#contracts/errors.js'
import type { ToolSpec } from '#core/tools/tool-spec.js'

/**
 * Refuses a child run that could call a tool with less approval than its parent: of a tool that the parent has, a child may
 * have another one of the same name, but not one that asks less.
 * @throws HarnessError `invalid_options`.
 */
export function checkGrants(tools: readonly ToolSpec[], parentTools: ReadonlyMap<string, ToolSpec>): void {
  for (const tool of tools) {
    const parentTool = parentTools.get(tool.name)
    if (parentTool === undefined || asksEnough(tool, parentTool)) continue
    throw new HarnessError(
      'invalid_options',
      `A child run cannot call \`${tool.name}\` with less approval than its parent: give it the parent's tool, or one with \`requiresApproval: true\`.`,
    )
  }
}

/** True if a tool asks a person whenever the other does. */
function asksEnough(
  { requiresApproval: rule = false }: ToolSpec,
  { requiresApproval: other = false }: ToolSpec,
): boolean {
  return other === false || rule === other || rule === 'always' || (rule === true && other !== 'always')
}
