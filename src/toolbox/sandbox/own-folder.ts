import { lstat, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { FileFailure, isSystemError } from '../workspace/failure.js'
import { OWN_FOLDER } from '../workspace/workspace.js'

/**
 * The harness's own folder in a root. It exists, so that no command can create it, and is no link, whose target would be visible
 * in the sandbox.
 * @throws FileFailure `PathTypeError`
 */
export async function ownFolderIn(root: string): Promise<string> {
  const path = join(root, OWN_FOLDER)
  await mkdir(path).catch((error: unknown) => {
    if (!isSystemError(error, 'EEXIST')) throw error
  })
  if ((await lstat(path)).isDirectory()) return path
  const message = `The command was not executed: \`${OWN_FOLDER}\` in the workspace root is not a plain folder, and a person must remove it.`
  throw new FileFailure('PathTypeError', message)
}
