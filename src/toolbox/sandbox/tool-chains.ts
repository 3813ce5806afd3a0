import { access, constants, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { basename, delimiter, dirname, isAbsolute, join, resolve } from 'node:path'
import { isInside } from '../workspace/path-policy.js'

/** Contain more than one program. */
const SHARED = new Set(['.local', '.config', '.cache'])
/** Folders next to `bin` or `shims` that hold programs, and what these load. Anything else may be a configuration with keys. */
const NEXT_TO_BIN = ['bin', 'sbin', 'lib', 'lib32', 'lib64', 'libexec', 'include']
const NEXT_TO_SHIMS = [...NEXT_TO_BIN, 'versions', 'version', 'installs', 'plugins']

/**
 * The folders of the search path that this user can enter, to be read-only. A folder `bin` or `shims` of a tool chain, such as
 * `~/.nvm/…/bin`, brings the folders next to it that hold programs and libraries, and no others.
 */
export async function toolChains(path = process.env['PATH'] ?? ''): Promise<readonly string[]> {
  const home = homedir()
  const named = [
    ...new Set(
      path
        .split(delimiter)
        .filter(isAbsolute)
        .map((folder) => resolve(folder)),
    ),
  ]
  // A search path with a whole home folder in it would show everything there.
  const folders = named.filter((folder) => folder !== '/' && folder !== home && !isInside(folder, home))
  const found = await Promise.all([...folders, ...(await Promise.all(folders.map(chainFolders))).flat()].map(enterable))
  return [...new Set(found.filter((folder) => folder !== null))]
}

async function chainFolders(folder: string): Promise<readonly string[]> {
  const parent = dirname(folder)
  if (!isOfToolChain(folder, parent)) return []
  // Java does not start without its settings of security.
  const isJava = (await enterable(join(parent, 'lib/modules'))) !== null
  const names = basename(folder) === 'shims' ? NEXT_TO_SHIMS : isJava ? [...NEXT_TO_BIN, 'conf'] : NEXT_TO_BIN
  return names.map((name) => join(parent, name))
}

function isOfToolChain(folder: string, parent: string): boolean {
  if (!/^(?:s?bin|shims)$/.test(basename(folder)) || SHARED.has(basename(parent)) || parent === homedir()) return false
  return parent.split('/').some((name) => name.startsWith('.')) || /^\/(?:opt|snap|home\/linuxbrew)\/./.test(parent)
}

/** A path that this user can look up, and enter if it is a folder; else null: mounting it would fail. */
export async function enterable(path: string): Promise<string | null> {
  try {
    const isFolder = (await stat(path)).isDirectory()
    await access(path, isFolder ? constants.X_OK : constants.F_OK)
    return path
  } catch {
    return null
  }
}
