import { resolve, sep } from 'node:path'
import { HarnessError } from '../../contracts/errors.js'
import type { ToolReach, ToolSpec } from '../../tools/spec.js'

/**
 * Refuses a child run that could do more than its parent. Of a tool that the parent has, a child may have another one, but
 * not one with less approval. Any other tool may reach, as its author states, only what a tool of the parent reaches
 * with no more approval. A tool that states nothing may reach anything; so may the child of a run that has such a tool.
 * @throws HarnessError `invalid_options`.
 */
export function checkGrants(
  tools: readonly ToolSpec[],
  { tools: parent, root }: { readonly tools: ReadonlyMap<string, ToolSpec>; readonly root: string },
): void {
  for (const tool of tools) {
    const theirs = parent.get(tool.name)
    if (theirs === tool) continue
    if (theirs !== undefined && !asksEnough(tool, theirs)) {
      throw refused(
        `cannot call \`${tool.name}\` with less approval than its parent: give it the parent's tool, or one with \`requiresApproval: true\``,
      )
    }
    const more = beyond(
      tool,
      [...parent.values()].filter((each) => asksEnough(tool, each)),
      root,
    )
    if (more !== undefined) {
      throw refused(
        `cannot have \`${tool.name}\`, which ${more}: no tool of its parent does, or none with as little approval`,
      )
    }
  }
}

/** True if a tool asks a person whenever the other does. */
function asksEnough(
  { requiresApproval: own = false }: ToolSpec,
  { requiresApproval: other = false }: ToolSpec,
): boolean {
  return other === false || own === other || own === 'always' || (own === true && other !== 'always')
}

/** The part of a tool's reach that none of the others has. */
function beyond({ reach }: ToolSpec, others: readonly ToolSpec[], root: string): string | undefined {
  const given = others.map((other) => other.reach)
  if (given.includes(undefined)) return undefined
  if (reach === undefined) return 'does not state its `reach`'
  for (const [kind, names] of Object.entries(reach) as [keyof ToolReach, readonly string[] | undefined][]) {
    const known = given.flatMap((each) => each?.[kind] ?? [])
    const more = names?.find((name) => !known.some((each) => COVERS[kind](each, name, root)))
    if (more !== undefined) return `reaches \`${more}\` (${kind})`
  }
  return undefined
}

type Covers = (given: string, wanted: string, root: string) => boolean

const isSame: Covers = (given, wanted) => given === wanted
const isBelow: Covers = (given, wanted, root) => {
  const [above, path] = [resolve(root, given), resolve(root, wanted)]
  return path === above || path.startsWith(above.endsWith(sep) ? above : above + sep)
}

const COVERS: Readonly<Record<keyof ToolReach, Covers>> = {
  reads: isBelow,
  writes: isBelow,
  hosts: (given, wanted) => {
    const [all, host] = [given.toLowerCase(), wanted.toLowerCase()]
    return all === '*' || all === host || (all.startsWith('*.') && host.endsWith(all.slice(1)))
  },
  programs: (given, wanted) => given === '*' || given === wanted,
  secrets: isSame,
}

function refused(problem: string): HarnessError {
  return new HarnessError('invalid_options', `A child run ${problem}.`)
}
