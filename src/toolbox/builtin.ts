import type { ToolSpec } from '../tools/spec.js'
import { fileTools } from './file-tools.js'

/** The built-in tools of these names, in this order; each works on the harness's workspace. */
export async function builtinTools(names: readonly string[]): Promise<readonly ToolSpec[]> {
  const tools: ToolSpec[] = [...fileTools()]
  if (names.includes('jsonl_search')) tools.push((await import('./jsonl-search/index.js')).jsonlSearch())
  return names.flatMap((name) => tools.find((tool) => tool.name === name) ?? [])
}
