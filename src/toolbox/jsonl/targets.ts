import { lstat } from 'node:fs/promises'
import { isMissing, PathValidationError } from '../workspace/failure.js'
import type { CallTime } from '../workspace/call-time.js'
import { walk } from '../workspace/walk.js'
import type { Workspace } from '../workspace/workspace.js'

/**
 * The JSONL files that a path stands for: a file, a folder with all below it, or a glob from the root; `.` for all that may
 * be read. A path where nothing is gives none.
 * @throws PathValidationError.
 */
export async function* jsonlFiles(
  workspace: Workspace,
  path: string,
  { signal, deadline }: CallTime,
): AsyncGenerator<string, void, undefined> {
  for (const each of await walksFor(workspace, path)) {
    for await (const entry of walk(workspace, { ...each, signal, deadline })) {
      if (entry.kind === 'file' && !entry.link && /\.jsonl$/i.test(entry.path)) yield entry.path
    }
  }
}

interface Walk {
  readonly start: string
  readonly glob?: string
}

async function walksFor(workspace: Workspace, path: string): Promise<readonly Walk[]> {
  const { readPolicy, root } = workspace
  if (path === '.' || path === '') return (await readPolicy.existingRoots()).map((start) => ({ start }))
  if (/[*?[\]{}]/.test(path) && !(await isThere(workspace, path))) {
    readPolicy.checkGlob(path)
    return [{ start: root, glob: path }]
  }
  const start = await readPolicy.resolveScope(path)
  return (await exists(start)) ? [{ start }] : []
}

/** A file may have a name that looks like a glob. */
async function isThere(workspace: Workspace, path: string): Promise<boolean> {
  try {
    return await exists(await workspace.readPolicy.resolveScope(path))
  } catch (error) {
    if (error instanceof PathValidationError) return false
    throw error
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path)
    return true
  } catch (error) {
    if (isMissing(error)) return false
    throw error
  }
}
