import { lstatSync, rmSync, unlinkSync } from 'node:fs'
import { copyFile, lstat, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isSystemError } from '../workspace/file-failure.js'
import type { GuardedFile } from './guarded-files.js'

/** A folder that a command sees in the place of a guarded one. */
export interface ReplacedFolder {
  readonly how: 'write'
  readonly path: string
  readonly from: string
}

/** Folders that a command writes directly: they contain data only. */
const DATA = ['objects', 'refs', 'logs']
/** Files that git replaces, so that a command has copies of them, which are put back in the end. */
const REPLACED = ['index', 'HEAD']
const VALID_HEAD = /^(?:ref: refs\/[^\0-\x20\x7f~^:?*[\\]+|[0-9a-f]{40,64})\n?$/
const SHARED_INDEX = /^sharedindex\.[0-9a-f]{40,64}$/

/**
 * A folder `.git` of which one command writes objects, refs, logs, index and HEAD, and nothing else. It sees a private folder in
 * its place: a file or folder that the command creates in it, such as `hooks` or `commondir`, is never in the real one.
 */
export class GitFolder {
  readonly #path: string
  readonly #copies: string
  readonly #before: ReadonlyMap<string, Buffer>
  readonly mounts: readonly (GuardedFile | ReplacedFolder)[]

  private constructor(
    path: string,
    copies: string,
    before: ReadonlyMap<string, Buffer>,
    names: readonly (readonly [string, boolean])[],
  ) {
    this.#path = path
    this.#copies = copies
    this.#before = before
    this.mounts = [
      { how: 'write', path, from: copies },
      ...names.map(([name, isFolder]): GuardedFile | ReplacedFolder => {
        const at = join(path, name)
        return DATA.includes(name) ? { how: 'write', path: at, from: at } : { how: 'read', path: at, isFolder }
      }),
    ]
  }

  static async open(path: string): Promise<GitFolder> {
    const copies = await mkdtemp(join(tmpdir(), 'thinharness-git-'))
    const before = new Map<string, Buffer>()
    const names: (readonly [string, boolean])[] = []
    for (const name of DATA) await mkdir(join(path, name)).catch(ignoreSystem)
    for (const entry of await readdir(path, { withFileTypes: true })) {
      const { name } = entry
      if (entry.isDirectory()) names.push([name, true])
      else if (!entry.isFile() || name.endsWith('.lock')) continue
      else if (REPLACED.includes(name)) {
        before.set(name, await readFile(join(path, name)))
        await writeFile(join(copies, name), before.get(name) ?? '')
      } else if (/^[A-Z_]+$/.test(name)) await copyFile(join(path, name), join(copies, name))
      else names.push([name, false])
    }
    return new GitFolder(path, copies, before, names)
  }

  /** Puts index and HEAD back, unless another program has changed them meanwhile, as git does it. */
  async close(): Promise<void> {
    try {
      for (const name of (await readdir(this.#copies)).filter((each) => SHARED_INDEX.test(each)))
        await this.#putBack(name)
      for (const name of REPLACED) await this.#putBack(name)
      for (const name of ['refs', 'logs']) await removeLinks(join(this.#path, name))
    } finally {
      rmSync(this.#copies, { recursive: true, force: true })
    }
  }

  async #putBack(name: string): Promise<void> {
    const copy = join(this.#copies, name)
    const stats = await lstat(copy).catch(ignoreSystem)
    if (stats?.isFile() !== true) return
    const after = await readFile(copy)
    const before = this.#before.get(name)
    if (before?.equals(after) === true || (name === 'HEAD' && !VALID_HEAD.test(after.toString('latin1')))) return
    const [real, lock] = [join(this.#path, name), join(this.#path, `${name}.lock`)]
    try {
      await writeFile(lock, after, { flag: 'wx' })
    } catch (error) {
      if (isSystemError(error)) return
      throw error
    }
    const now = await readFile(real).catch(ignoreSystem)
    const isUnchanged = now === undefined ? before === undefined : before?.equals(now) === true
    if (isUnchanged) await rename(lock, real)
    else await rm(lock)
  }
}

function ignoreSystem(error: unknown): undefined {
  if (!isSystemError(error)) throw error
}

/** Git of a person would write through them. */
async function removeLinks(folder: string): Promise<void> {
  if (lstatSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) return
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isSymbolicLink()) unlinkSync(path)
    else if (entry.isDirectory()) await removeLinks(path)
  }
}
