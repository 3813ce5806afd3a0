import { constants } from 'node:fs'
import type { Dirent } from 'node:fs'
import { open, readdir, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { isSystemError } from '../workspace/file-failure.js'
import { PROTECTED_FILES, Protection } from '../workspace/protection.js'
import type { ProtectedFiles } from '../workspace/protection.js'
import { OWN_FOLDER } from '../workspace/workspace.js'

/** A file or folder in the root that a sandboxed command may not read, or not write. */
export interface GuardedFile {
  readonly path: string
  readonly how: 'hide' | 'read'
  readonly isFolder: boolean
}

const MAX_DEPTH = 3
const MAX_FOLDERS = 1_000
/** Folders without files of the user. */
const SKIPPED = new Set([OWN_FOLDER, 'node_modules', '.venv', '__pycache__', 'target', 'dist'])

/** Git itself has to be able to write the rest of `.git`. */
const GIT = ['.git/config', '.git/config.worktree', '.git/hooks']

const DEFAULT_PROTECTION: ProtectedFiles = {
  read: PROTECTED_FILES.read,
  write: [...PROTECTED_FILES.write.filter((glob) => glob !== '.git'), ...GIT],
}

/** Finds the protected files in a root, again for each command. */
export class FileGuard {
  readonly #read: Protection
  readonly #write: Protection
  readonly #isIdle: boolean

  constructor(protect: Partial<ProtectedFiles> | false) {
    const { read, write } = protect === false ? { read: [], write: [] } : { ...DEFAULT_PROTECTION, ...protect }
    this.#read = new Protection(read)
    this.#write = new Protection(write)
    this.#isIdle = read.length + write.length === 0
  }

  /** Links are left out: their targets have names of their own. */
  async filesIn(root: string): Promise<readonly GuardedFile[]> {
    const found: GuardedFile[] = []
    const open: string[][] = this.#isIdle ? [] : [[]]
    for (let count = 0; count < MAX_FOLDERS; count++) {
      const folder = open.shift()
      if (folder === undefined) break
      for (const entry of await folderEntries(join(root, ...folder))) {
        const names = [...folder, entry.name]
        const isFolder = entry.isDirectory()
        if (!isFolder && !entry.isFile()) continue
        const how = this.#ruleFor(names)
        if (how !== null) found.push({ path: join(root, ...names), how, isFolder })
        else if (isFolder && names.length <= guardedDepth(names) && !SKIPPED.has(entry.name)) open.push(names)
      }
    }
    return found
  }

  #ruleFor(names: readonly string[]): GuardedFile['how'] | null {
    if (this.#read.ruleOf(names) !== undefined) return 'hide'
    return this.#write.ruleOf(names) === undefined ? null : 'read'
  }
}

/** The objects of git have names without meaning. */
function guardedDepth([first]: readonly string[]): number {
  return first === '.git' ? 1 : MAX_DEPTH
}

async function folderEntries(folder: string): Promise<readonly Dirent[]> {
  try {
    return await readdir(folder, { withFileTypes: true })
  } catch (error) {
    if (isSystemError(error)) return []
    throw error
  }
}

/**
 * The device and number of what is at a path, as `stat -c %d:%i` prints them; `undefined` if a link leads there, or nothing is
 * there that can be opened.
 */
export async function fileIdentity(path: string): Promise<string | undefined> {
  try {
    const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      if ((await readlink(`/proc/self/fd/${handle.fd}`)) !== path) return undefined
      const { dev, ino } = await handle.stat({ bigint: true })
      return `${dev}:${ino}`
    } finally {
      await handle.close()
    }
  } catch (error) {
    if (isSystemError(error)) return undefined
    throw error
  }
}
