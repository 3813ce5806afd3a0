import type { FileToolOptions } from '../workspace/options.js'
import { workspaceOf } from '../workspace/workspace.js'
import type { Workspace } from '../workspace/workspace.js'

/** A folder of instructions, and of what they need, that a model reads when a task calls for it. */
export interface Skill {
  readonly name: string
  /** One line: what it does and when to use it. */
  readonly description: string
  /** Absolute, links resolved. */
  readonly folder: string
  /** The model is not told of it; who embeds the harness may. */
  readonly hidden: boolean
}

export const SKILL_FILE = 'SKILL.md'

/** Larger files are no instructions. */
export const MAX_SKILL_FILE_BYTES = 1_048_576

/** One object a folder, so that what is known of it is remembered. */
const options = new Map<string, FileToolOptions>()
const MAX_FOLDERS = 2_000

/** A skill's folder as the file tools see it: nothing leads out of it, links neither. */
export function workspaceOfSkill(folder: string): Workspace {
  const known = options.get(folder)
  if (known !== undefined) return workspaceOf(known, folder)
  const oldest = options.size >= MAX_FOLDERS ? options.keys().next().value : undefined
  if (oldest !== undefined) options.delete(oldest)
  const made: FileToolOptions = { root: folder }
  options.set(folder, made)
  return workspaceOf(made, folder)
}
