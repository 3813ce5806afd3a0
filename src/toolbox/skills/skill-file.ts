import { FileFailure } from '../workspace/failure.js'
import { shownPath } from '../workspace/path-text.js'
import { openFile, withResolved } from '../workspace/safe-open.js'
import { MAX_SKILL_FILE_BYTES, workspaceOfSkill } from './skill.js'

/**
 * The text of a file in a skill's folder; invalid bytes are replaced.
 * @throws PathValidationError when it lies outside; FileFailure; an error of the system when it is not there.
 */
export async function readSkillFile(folder: string, path: string): Promise<string> {
  const workspace = workspaceOfSkill(folder)
  return withResolved(
    () => workspace.rootPolicy.resolve(path),
    async (resolved) => {
      const { handle, stats } = await openFile(workspace, resolved, shownPath(path))
      try {
        if (stats.size > MAX_SKILL_FILE_BYTES) throw tooLarge(path, stats.size)
        const bytes = Buffer.alloc(Number(stats.size))
        const { bytesRead } = await handle.read(bytes, 0, bytes.length, 0)
        const text = new TextDecoder().decode(bytes.subarray(0, bytesRead))
        if (text.includes('\0')) throw new FileFailure('UnsupportedContent', `no text: ${shownPath(path)}`)
        return text
      } finally {
        await handle.close()
      }
    },
  )
}

function tooLarge(path: string, size: bigint): FileFailure {
  const message = `${shownPath(path)} has ${size.toString()} bytes, more than the ${MAX_SKILL_FILE_BYTES} that are read`
  return new FileFailure('FileTooLarge', message)
}
