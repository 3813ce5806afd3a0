import type { Dirent, Stats } from 'node:fs'
import { constants } from 'node:fs'
import { lstat, readdir, realpath } from 'node:fs/promises'
import { basename, join, relative, sep } from 'node:path'
import { DeadlinePassed, FileFailure, isMissing, isSystemError, PathValidationError } from './file-failure.js'
import { compileGlob } from '#util/glob.js'
import type { Glob, GlobState } from '#util/glob.js'
import { IGNORE_FILES, ignoreVerdict, parseIgnoreFile } from './ignore-rules.js'
import type { IgnoreFileName, IgnoreRule, IgnoreScope } from './ignore-rules.js'
import { shownPath } from './path-text.js'
import { openFolder, openIn } from './safe-open.js'
import type { Folder } from './safe-open.js'
import { eventLoopYield } from './call-time.js'
import type { Workspace } from './workspace.js'

/** Larger ignore files are ignored. */
const MAX_IGNORE_BYTES = 1_000_000
/** Contains addresses with passwords. */
const GIT_FOLDER = '.git'
/** Names between two checks of the time. */
const NAMES_BETWEEN_BREATHS = 256

export interface WalkStart {
  /** Absolute, links resolved, readable or above something readable. */
  readonly path: string
  readonly isFolder: boolean
}

/**
 * The place in which a tool searches.
 * @throws PathValidationError; FileFailure `NotFound` if it does not exist.
 */
export async function walkStart(
  { readPolicy }: Workspace,
  raw: string,
  { names = false }: Pick<WalkOptions, 'names'> = {},
): Promise<WalkStart> {
  const path = await (names ? readPolicy.resolveNames(raw) : readPolicy.resolveScope(raw))
  try {
    return { path, isFolder: (await lstat(path)).isDirectory() }
  } catch (error) {
    if (isMissing(error)) throw new FileFailure('NotFound', `path not found: ${shownPath(raw)}`)
    throw error
  }
}

export interface WalkOptions {
  /** Absolute, links resolved, as from `readPolicy.resolveScope`. A file is its own only entry. */
  readonly start: string
  /** Only matching entries; relative to `start`, checked by `checkGlob`. Default: all. */
  readonly glob?: string
  /** Default false: a name that begins with a dot matches only a glob with a literal dot. */
  readonly includeHidden?: boolean
  /** Only names are shown, so protected files and folders are included. Default false. */
  readonly names?: boolean
  readonly signal: AbortSignal
  /** In ms since 1970. */
  readonly deadline?: number
}

export interface WalkEntry {
  /** Absolute. */
  readonly path: string
  readonly kind: 'file' | 'folder'
  /** The entry is a link; its `target` is inside the root and readable. Links are not entered. */
  readonly link: boolean
  /** `path` with links resolved. */
  readonly target: string
}

/**
 * The walker of all file tools: readable files and folders below a start, the entries of a folder together and sorted by
 * name, then folder by folder. It skips `.git`, hidden names whatever ignore files say, and names that are ignored by
 * `.gitignore` (with or without `.git`), `.ignore` and `.rgignore` files in the root and below. Ignore files above the root
 * or of the user are not read, as by ripgrep with
 * `--no-ignore-parent --no-ignore-global --no-ignore-exclude --no-require-git` in the root. `start` and names that a glob
 * spells without wildcards are never ignored. The harness's own folder, pipes, sockets, devices and links out of the root are
 * never included. A folder that cannot be read, or no longer exists, is skipped.
 *
 * Keeps the names of one folder in memory, and the folders still to be visited.
 * @throws DeadlinePassed; the signal's reason when aborted.
 */
export async function* walk(workspace: Workspace, options: WalkOptions): AsyncGenerator<WalkEntry, void, undefined> {
  const { start, glob } = options
  const matcher = glob === undefined ? undefined : compileGlob(glob)
  const stats = await lstat(start)
  if (!stats.isDirectory()) {
    const fits = matcher?.step(matcher.start, basename(start)).matched ?? true
    if (!fits || !stats.isFile() || !isShown(workspace, start, options)) return
    yield { path: start, kind: 'file', link: false, target: start }
    return
  }
  const giveWay = eventLoopYield()
  let names = 0
  const open: Visit[] = [await firstVisit(workspace, start, matcher)]
  for (let visit = open.pop(); visit !== undefined; visit = open.pop()) {
    const below: Visit[] = []
    for (const each of await matchingEntries(workspace, visit, { ...options, matcher, giveWay })) {
      if (++names % NAMES_BETWEEN_BREATHS === 0) await giveWay()
      requireTime(options)
      if (each.visit !== undefined) below.push(each.visit)
      const entry = each.matched ? await walkedEntry(workspace, each, options) : undefined
      if (entry !== undefined) yield entry
    }
    open.push(...below.reverse())
  }
}

/** A folder to visit. */
interface Visit {
  readonly path: string
  /** Names from the root to it. */
  readonly segments: readonly string[]
  readonly scope: IgnoreScope | undefined
  readonly state: GlobState | undefined
  readonly isStart: boolean
}

interface FolderEntry {
  readonly path: string
  readonly type: EntryType
  readonly matched: boolean
  /** For a folder that may contain matches. */
  readonly visit: Visit | undefined
}

type EntryType = 'file' | 'folder' | 'link'

interface Matching extends WalkOptions {
  readonly matcher: Glob | undefined
  /** A folder may hold a million names. */
  readonly giveWay: () => Promise<void>
}

async function firstVisit(workspace: Workspace, start: string, matcher: Glob | undefined): Promise<Visit> {
  const segments = relative(workspace.root, start).split(sep).filter(Boolean)
  let scope: IgnoreScope | undefined
  for (let depth = 0; depth < segments.length; depth++) {
    const path = join(workspace.root, ...segments.slice(0, depth))
    try {
      scope = await withFolder(workspace, path, async (folder) =>
        ignoreScope(folder, await readdir(folder.at('.')), { depth, parent: scope }),
      )
    } catch (error) {
      if (!isSkippable(error)) throw error
    }
  }
  return { path: start, segments, scope, state: matcher?.start, isStart: true }
}

async function matchingEntries(workspace: Workspace, visit: Visit, options: Matching): Promise<FolderEntry[]> {
  requireTime(options)
  try {
    return await withFolder(workspace, visit.path, async (folder) => {
      const entries = await readdir(folder.at('.'), { withFileTypes: true })
      const names = entries.map(({ name }) => name)
      const scope = await ignoreScope(folder, names, { depth: visit.segments.length, parent: visit.scope })
      entries.sort((left, right) => (left.name < right.name ? -1 : 1))
      const found: FolderEntry[] = []
      for (const [index, entry] of entries.entries()) {
        if (index % NAMES_BETWEEN_BREATHS === 0) await options.giveWay()
        const type = entryType(entry) ?? (await typeAt(folder, entry.name))
        if (type === undefined) continue
        const each = folderEntry(workspace, { ...visit, scope }, { name: entry.name, type, matching: options })
        if (each !== undefined) found.push(each)
      }
      return found
    })
  } catch (error) {
    if (visit.isStart || !isSkippable(error)) throw error
    return []
  }
}

/** A name in a folder; `undefined` if it is hidden, ignored, or neither matches nor can contain matches. */
function folderEntry(
  workspace: Workspace,
  folder: Visit,
  { name, type, matching }: { readonly name: string; readonly type: EntryType; readonly matching: Matching },
): FolderEntry | undefined {
  const { matcher, includeHidden = false } = matching
  const path = join(folder.path, name)
  if (workspace.isOwn(path) || name.toLowerCase() === GIT_FOLDER) return undefined
  const isFolder = type === 'folder'
  const segments = [...folder.segments, name]
  const verdict = ignoreVerdict(folder.scope, segments, isFolder)
  const mustBeNamed = name.startsWith('.') && !includeHidden
  if (mustBeNamed && matcher === undefined) return undefined
  const state = folder.state && matcher?.step(folder.state, name, mustBeNamed)
  if (verdict === 'ignored' && state?.named !== true) return undefined

  const covered = isShown(workspace, path, matching)
  const enter = isFolder && (state?.open ?? true) && (covered || workspace.readPolicy.leadsTo(path))
  const matched = covered && (state?.matched ?? true)
  if (!enter && !matched) return undefined
  const visit = enter ? { path, segments, scope: folder.scope, state, isStart: false } : undefined
  return { path, type, matched, visit }
}

async function walkedEntry(
  workspace: Workspace,
  { path, type }: FolderEntry,
  options: WalkOptions,
): Promise<WalkEntry | undefined> {
  if (type !== 'link') return { path, kind: type, link: false, target: path }
  try {
    const target = await realpath(path)
    if (!isShown(workspace, target, options) || workspace.isOwn(target)) return undefined
    const stats = await lstat(target)
    if (stats.isDirectory()) return { path, kind: 'folder', link: true, target }
    return stats.isFile() ? { path, kind: 'file', link: true, target } : undefined
  } catch (error) {
    if (isSystemError(error)) return undefined
    throw error
  }
}

function isShown({ readPolicy }: Workspace, path: string, { names = false }: WalkOptions): boolean {
  return names ? readPolicy.lists(path) : readPolicy.covers(path)
}

function entryType(entry: Dirent | Stats): EntryType | undefined {
  if (entry.isFile()) return 'file'
  if (entry.isDirectory()) return 'folder'
  return entry.isSymbolicLink() ? 'link' : undefined
}

/** Some file systems do not report the type of an entry when they list it. Other types are skipped. */
async function typeAt(folder: Folder, name: string): Promise<EntryType | undefined> {
  try {
    return entryType(await lstat(folder.at(name)))
  } catch (error) {
    if (isSystemError(error)) return undefined
    throw error
  }
}

async function ignoreScope(
  folder: Folder,
  names: readonly string[],
  { depth, parent }: { readonly depth: number; readonly parent: IgnoreScope | undefined },
): Promise<IgnoreScope | undefined> {
  const present = IGNORE_FILES.filter((file) => names.includes(file))
  if (present.length === 0) return parent
  const rules: Partial<Record<IgnoreFileName, readonly IgnoreRule[]>> = {}
  for (const file of present) rules[file] = await readIgnoreRules(folder, file)
  return { parent, depth, rules }
}

async function readIgnoreRules(folder: Folder, file: IgnoreFileName): Promise<readonly IgnoreRule[]> {
  try {
    const handle = await openIn(folder, file, { flags: constants.O_RDONLY })
    try {
      const stats = await handle.stat()
      if (!stats.isFile() || stats.size > MAX_IGNORE_BYTES) return []
      return parseIgnoreFile(await handle.readFile('utf8'))
    } finally {
      await handle.close()
    }
  } catch (error) {
    if (isSkippable(error)) return []
    throw error
  }
}

async function withFolder<T>(workspace: Workspace, path: string, use: (folder: Folder) => Promise<T>): Promise<T> {
  const folder = await openFolder(workspace, path)
  try {
    return await use(folder)
  } finally {
    await folder.close()
  }
}

/** Missing, changed meanwhile, or not readable; not if there are no file descriptors left. */
function isSkippable(error: unknown): boolean {
  if (error instanceof PathValidationError || error instanceof FileFailure) return true
  return isSystemError(error, 'ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'ENXIO', 'EISDIR')
}

function requireTime({ signal, deadline }: WalkOptions): void {
  signal.throwIfAborted()
  if (deadline !== undefined && Date.now() > deadline) throw new DeadlinePassed()
}
