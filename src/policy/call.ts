import type { JsonObject, ToolAnnotations, ToolReach } from '../index.js'
import { categoryOf, effectOf } from './category.js'
import type { Category } from './rule.js'

/** A call as rules see it. */
export interface DescribedCall {
  /** Name of the tool. */
  readonly tool: string
  /** The arguments. Default: none. */
  readonly args?: JsonObject | undefined
  readonly annotations?: ToolAnnotations | undefined
  readonly reach?: ToolReach | undefined
  /** The tool's `pathFields`: arguments that name paths, in addition to those with a usual name such as `path`. */
  readonly pathFields?: readonly string[] | undefined
  /** The tool's own rule, with a function already asked. Default: false. */
  readonly requiresApproval?: boolean | 'always' | undefined
  /** The tool's `metadata`; that of a tool of an MCP server says so. */
  readonly metadata?: JsonObject | undefined
  /** Sources of content that is in the arguments: `web:https://example.com/`, `server:github`. Default: none. */
  readonly sources?: readonly string[] | undefined
  /** Name of the subagent that calls; null or none: the run at the top. */
  readonly agent?: string | null | undefined
}

/** A call, prepared for rules. */
export interface Subject {
  readonly tool: string
  readonly category: Category
  readonly args: JsonObject
  readonly sources: readonly string[]
  readonly agent: string | null
  readonly approval: boolean | 'always'
  readonly isInteractive: boolean
  readonly effect: Category
}

/** Tools that only speak to the person at hand, or only look into the conversation. */
const INTERACTIVE: ReadonlySet<string> = new Set([
  ...['ask_user', 'submit_plan', 'request_access', 'recall'],
  ...['task_write', 'task_update', 'task_complete', 'task_check', 'tasks'],
])

export function subjectOf(call: DescribedCall): Subject {
  const { tool, args = {}, sources = [], agent = null, requiresApproval = false } = call
  const described = { ...call, name: tool }
  const category = categoryOf(described)
  return {
    ...{ tool, category, args, sources, agent, approval: requiresApproval },
    effect: effectOf(described),
    isInteractive: category !== 'mcp' && INTERACTIVE.has(tool),
  }
}
