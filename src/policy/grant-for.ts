import type { DescribedCall } from './call.js'
import { categoryOf } from './category.js'
import { grant } from './rule.js'
import type { Rule } from './rule.js'

/**
 * The grant for a call that a person allowed once and for all: of its tool, or of all tools of its category. Null for the category
 * `other`, which says nothing about a tool.
 */
export function grantFor(call: DescribedCall, scope: 'tool' | 'category'): Rule | null {
  if (scope === 'tool') return grant({ tool: call.tool })
  const category = categoryOf({ ...call, name: call.tool })
  return category === 'other' ? null : grant({ category })
}
