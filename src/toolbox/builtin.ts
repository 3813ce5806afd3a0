import type { ToolSpec } from '#core/tools/tool-spec.js'
import { fileTools } from './files/file-tools.js'
import type { SubagentSpec } from './agents/subagent-options.js'

/**
 * The built-in tools with these names, in this order, for the harness's workspace; then the tool `subagent`, if there are
 * agents.
 */
export async function builtinTools(
  names: readonly string[],
  agents: readonly SubagentSpec[] | null = null,
): Promise<readonly ToolSpec[]> {
  const tools: ToolSpec[] = [...fileTools()]
  if (names.includes('jsonl_search')) tools.push((await import('./jsonl/jsonl-search.js')).jsonlSearch())
  if (names.includes('parallel_llm')) tools.push((await import('./agents/parallel-llm/parallel-llm.js')).parallelLlm())
  const named = names.flatMap((name) => tools.find((tool) => tool.name === name) ?? [])
  return agents === null ? named : [...named, (await import('./agents/subagent.js')).subagent({ agents })]
}
