import { lstat } from 'node:fs/promises'
import { FileFailure, isMissing } from './failure.js'
import { shownPath } from './path-text.js'
import type { Workspace } from './workspace.js'

export interface Scope {
  /** Absolute, links resolved, readable or above something readable. */
  readonly path: string
  readonly isFolder: boolean
}

/**
 * The place that a tool is to look in.
 * @throws PathValidationError; FileFailure `NotFound` when nothing is there.
 */
export async function scopeAt(workspace: Workspace, raw: string): Promise<Scope> {
  const path = await workspace.readPolicy.resolveScope(raw)
  try {
    return { path, isFolder: (await lstat(path)).isDirectory() }
  } catch (error) {
    if (isMissing(error)) throw new FileFailure('NotFound', `path not found: ${shownPath(raw)}`)
    throw error
  }
}
