import { constants, lstatSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import type { Dirent } from 'node:fs'
import { open, readlink } from 'node:fs/promises'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { eventLoopYield } from '../workspace/call-time.js'
import { FileFailure, isSystemError } from '../workspace/file-failure.js'
import { isInside } from '../workspace/path-policy.js'
import { PROTECTED_FILES, Protection } from '../workspace/protection.js'
import type { ProtectedFiles } from '../workspace/protection.js'
import { OWN_FOLDER } from '../workspace/workspace.js'

/** A file or folder in the root that a sandboxed command may not read, or not write. */
export interface GuardedFile {
  readonly path: string
  readonly how: 'hide' | 'read'
  readonly isFolder: boolean
}

/** Each file needs a mount. Of more, whole folders are hidden, those with the most such files first. */
const MOST_GUARDED = 1_800
/** A folder with a longer path is hidden: what is below it may have a path that nothing can be mounted on. */
const LONGEST_PATH = 3_000
/** A folder that was changed less than this before it was read may change again within the same tick of its clock, in ms. */
const TICK_MS = 1_000
const MOST_REMEMBERED = 200_000

/** Entries of a folder with a rule of their own, and the other folders in it. */
interface FolderEntries {
  readonly changed: bigint
  readonly guarded: readonly (Pick<GuardedFile, 'path' | 'how'> & { readonly kind: EntryKind })[]
  readonly folders: readonly string[]
}

type EntryKind = 'file' | 'folder' | 'link'

/** Finds the protected files in a root by their names, at every depth, again for each command. */
export class FileGuard {
  readonly #read: Protection
  readonly #write: Protection
  readonly #isIdle: boolean
  /** By path. Nobody can set the time of the last change of a folder, so those that have not changed need not be read again. */
  readonly #folders = new Map<string, FolderEntries>()

  constructor(protect: Partial<ProtectedFiles> | false) {
    const { read, write } = protect === false ? { read: [], write: [] } : { ...PROTECTED_FILES, ...protect }
    this.#read = new Protection(read)
    // Whatever the rules of the host are about: everything in `.git` can make git run a program.
    this.#write = new Protection(protect === false ? [] : [...write, '.git'])
    this.#isIdle = protect === false
  }

  /**
   * Parents come before what is in them. Of a link, its target in the root counts.
   * @throws FileFailure if there are too many in the root itself, or it cannot be listed.
   */
  async filesIn(root: string): Promise<readonly GuardedFile[]> {
    const found = new Map<string, GuardedFile>()
    const add = (file: GuardedFile): void => {
      if (found.get(file.path)?.how !== 'hide') found.set(file.path, file)
    }
    const giveWay = eventLoopYield()
    const open = this.#isIdle ? [] : [root]
    for (let folder = open.pop(); folder !== undefined; folder = open.pop()) {
      await giveWay()
      const entries = this.#entriesOf(root, folder)
      if (entries === null) {
        if (folder === root) throw refusal('its root cannot be listed')
        add({ path: folder, how: 'hide', isFolder: true })
      }
      for (const name of entries?.folders ?? []) open.push(join(folder, name))
      for (const entry of entries?.guarded ?? []) {
        for (const file of guardedPlaces(root, entry)) add(file)
        if (entry.kind === 'folder' && entry.how === 'read' && !isGit(entry.path)) open.push(entry.path)
      }
    }
    return fewer(root, withoutCovered([...found.values()]))
  }

  /** Null for a folder that cannot be listed. */
  #entriesOf(root: string, folder: string): FolderEntries | null {
    if (folder.length > LONGEST_PATH) return null
    try {
      const { ctimeNs: changed, ctimeMs } = lstatSync(folder, { bigint: true })
      const known = this.#folders.get(folder)
      if (known?.changed === changed) return known
      const entries = this.#matching(root, folder, readdirSync(folder, { withFileTypes: true }), changed)
      if (this.#folders.size >= MOST_REMEMBERED) this.#folders.clear()
      if (Date.now() - Number(ctimeMs) > TICK_MS) this.#folders.set(folder, entries)
      return entries
    } catch (error) {
      if (isSystemError(error, 'ENOENT', 'ENOTDIR')) return { changed: 0n, guarded: [], folders: [] }
      if (isSystemError(error)) return null
      throw error
    }
  }

  #matching(root: string, folder: string, entries: readonly Dirent[], changed: bigint): FolderEntries {
    const above = relative(root, folder).split(sep).filter(Boolean)
    const guarded: FolderEntries['guarded'][number][] = []
    const folders: string[] = []
    for (const entry of entries) {
      const kind = entryKind(entry)
      if (kind === null || (above.length === 0 && entry.name === OWN_FOLDER)) continue
      const how = this.#ruleFor([...above, entry.name])
      if (how !== null) guarded.push({ path: join(folder, entry.name), how, kind })
      else if (kind === 'folder') folders.push(entry.name)
    }
    return { changed, guarded, folders }
  }

  #ruleFor(names: readonly string[]): GuardedFile['how'] | null {
    if (this.#read.ruleOf(names) !== undefined) return 'hide'
    return this.#write.ruleOf(names) === undefined ? null : 'read'
  }
}

function entryKind(entry: Dirent): EntryKind | null {
  if (entry.isDirectory()) return 'folder'
  if (entry.isFile()) return 'file'
  return entry.isSymbolicLink() ? 'link' : null
}

function isGit(path: string): boolean {
  return /[\\/]\.git$/i.test(path)
}

/** The file itself, or the target of a link; and the folder of git that a file `.git` names. Nothing outside the root. */
function guardedPlaces(root: string, { path, how, kind }: FolderEntries['guarded'][number]): readonly GuardedFile[] {
  if (kind === 'link') return guardedTarget(root, path, how)
  const file = { path, how, isFolder: kind === 'folder' }
  return kind === 'file' && isGit(path) ? [file, ...guardedTarget(root, gitFolderOf(path), 'read')] : [file]
}

function guardedTarget(root: string, named: string | undefined, how: GuardedFile['how']): readonly GuardedFile[] {
  if (named === undefined) return []
  try {
    const path = realpathSync(named)
    const stats = lstatSync(path)
    if (!isInside(root, path) || isInside(join(root, OWN_FOLDER), path)) return []
    return stats.isFile() || stats.isDirectory() ? [{ path, how, isFolder: stats.isDirectory() }] : []
  } catch (error) {
    if (isSystemError(error)) return []
    throw error
  }
}

/** `gitdir: ../.git/modules/part`. */
function gitFolderOf(file: string): string | undefined {
  try {
    const named = /^gitdir: ([^\n]+)/.exec(readFileSync(file, 'utf8').slice(0, 4_096))?.[1]
    return named === undefined ? undefined : resolve(dirname(file), named.trimEnd())
  } catch (error) {
    if (isSystemError(error)) return undefined
    throw error
  }
}

const NOWHERE = '\0'

/** In the order of their paths, without those in a hidden folder, and read-only ones in a read-only folder. */
function withoutCovered(files: readonly GuardedFile[]): readonly GuardedFile[] {
  const kept: GuardedFile[] = []
  const covering = { hide: NOWHERE, read: NOWHERE }
  const key = ({ path }: GuardedFile): string => path.replaceAll(sep, '\0')
  for (const file of files.toSorted((left, right) => (key(left) < key(right) ? -1 : 1))) {
    if (isInside(covering.hide, file.path) || (file.how === 'read' && isInside(covering.read, file.path))) continue
    kept.push(file)
    if (file.isFolder) covering[file.how] = file.path
  }
  return kept
}

function fewer(root: string, files: readonly GuardedFile[]): readonly GuardedFile[] {
  if (files.length <= MOST_GUARDED) return files
  const counts = new Map<string, number>()
  for (const { path } of files) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1)
  const hidden: GuardedFile[] = []
  let left = files.length
  for (const [path, count] of [...counts].sort(([, many], [, most]) => most - many)) {
    if (left <= MOST_GUARDED || count === 1) break
    if (path === root) continue
    hidden.push({ path, how: 'hide', isFolder: true })
    left -= count - 1
  }
  if (left <= MOST_GUARDED)
    return withoutCovered([...files.filter(({ path }) => !hidden.some((each) => each.path === path)), ...hidden])
  const most = `more than the ${MOST_GUARDED} that a sandbox can cover: a person has to narrow \`protect\``
  throw refusal(`it has ${files.length} protected files, ${most}`)
}

function refusal(problem: string): FileFailure {
  const message = `The command was not executed: the workspace cannot be protected in a sandbox, because ${problem}.`
  return new FileFailure('SandboxUnavailable', message)
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
