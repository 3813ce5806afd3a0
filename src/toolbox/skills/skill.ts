import { FileFailure } from '../workspace/file-failure.js'
import { shownPath } from '../workspace/path-text.js'
import { withFile, workspaceOf } from '../workspace/workspace.js'
import type { Workspace } from '../workspace/workspace.js'

/** A folder of instructions and other files that a model reads when a task requires it. */
export interface Skill {
  readonly name: string
  /** One line: its purpose and when to use it. */
  readonly description: string
  /** Absolute, links resolved. */
  readonly folder: string
  /** Not shown to the model; the host may do so. */
  readonly hidden: boolean
}

export const SKILL_FILE = 'SKILL.md'

const MAX_FILE_BYTES = 1_048_576

const OPTIONS = {}

/** A skill's folder as the file tools see it: nothing leads out of it, including links. */
export function workspaceOfSkill(folder: string): Workspace {
  return workspaceOf(OPTIONS, folder)
}

/**
 * The text of a file in a skill's folder; invalid bytes are replaced.
 * @throws PathValidationError if it is outside; FileFailure; an error of the system if it does not exist.
 */
export async function readSkillFile(folder: string, path: string): Promise<string> {
  const workspace = workspaceOfSkill(folder)
  return withFile(workspace, { policy: workspace.readPolicy, path }, async ({ handle, stats }) => {
    if (stats.size > MAX_FILE_BYTES) throw skillFileTooLarge(path, stats.size)
    const bytes = Buffer.alloc(Number(stats.size))
    const { bytesRead } = await handle.read(bytes, 0, bytes.length, 0)
    const text = new TextDecoder().decode(bytes.subarray(0, bytesRead))
    if (text.includes('\0')) throw new FileFailure('UnsupportedContent', `not text: ${shownPath(path)}`)
    return text
  })
}

function skillFileTooLarge(path: string, size: bigint): FileFailure {
  const message = `${shownPath(path)} has ${size.toString()} bytes, more than the ${MAX_FILE_BYTES} that are read`
  return new FileFailure('FileTooLarge', message)
}
