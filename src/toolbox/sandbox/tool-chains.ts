import { readdir } from 'node:fs/promises'
import { homedir } from 'node:os'
import { basename, delimiter, dirname, isAbsolute, join } from 'node:path'
import { isSystemError } from '../workspace/failure.js'
import type { GuardedFile } from './guarded-files.js'

/** The programs of the user that commands can run. */
export interface ToolChains {
  readonly paths: readonly string[]
  readonly hidden: readonly GuardedFile[]
}

/** Contain more than one program. */
const SHARED = new Set(['.local', '.config', '.cache'])
const CREDENTIALS = /^(?:credentials.*|\.npmrc|\.netrc|\.pypirc|\.env.*)$/i

/**
 * The folders of the search path, read-only. A folder `bin` or `shims` of a tool chain in a hidden folder, such as `~/.nvm/…/bin`,
 * brings the rest of that tool chain, without its credentials.
 */
export async function toolChains(path = process.env['PATH'] ?? ''): Promise<ToolChains> {
  const folders = [...new Set(path.split(delimiter).filter((folder) => isAbsolute(folder) && folder !== '/'))]
  const paths = folders.map((folder) => (isOfToolChain(folder) ? dirname(folder) : folder))
  const inside = paths.filter((folder) => folder !== homedir() && !folders.includes(folder))
  const hidden = await Promise.all(inside.map(credentialsIn))
  return { paths: [...new Set(paths)], hidden: hidden.flat() }
}

function isOfToolChain(folder: string): boolean {
  const parent = dirname(folder)
  if (!/^(?:s?bin|shims)$/.test(basename(folder)) || SHARED.has(basename(parent)) || parent === homedir()) return false
  return parent.split('/').some((name) => name.startsWith('.')) || /^\/(?:opt|snap|home\/linuxbrew)\/./.test(parent)
}

async function credentialsIn(folder: string): Promise<readonly GuardedFile[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true })
    return entries
      .filter((entry) => entry.isFile() && CREDENTIALS.test(entry.name))
      .map(({ name }) => ({ path: join(folder, name), how: 'hide', isFolder: false }))
  } catch (error) {
    if (isSystemError(error)) return []
    throw error
  }
}
