import type { Dirent } from 'node:fs'
import { constants } from 'node:fs'
import { lstat, readdir, realpath } from 'node:fs/promises'
import { basename, join, relative, sep } from 'node:path'
import { DeadlinePassed, FileFailure, isMissing, isSystemError, PathValidationError } from './failure.js'
import { compileGlob } from './glob-pattern.js'
import type { Glob, GlobState } from './glob-pattern.js'
import { IGNORE_FILES, ignoreVerdict, parseIgnoreFile } from './ignore-rules.js'
import type { IgnoreFileName, IgnoreRule, IgnoreScope } from './ignore-rules.js'
import { shownPath } from './path-text.js'
import { openFolder, openIn } from './safe-open.js'
import type { Folder } from './safe-open.js'
import { eventLoopYield } from './call-time.js'
import type { Workspace } from './workspace.js'

/** Larger ignore files are no longer lists that somebody wrote. */
const MAX_IGNORE_BYTES = 1_000_000
/** Names between two looks at the clock. */
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
export async function walkStart(workspace: Workspace, raw: string): Promise<WalkStart> {
  const path = await workspace.readPolicy.resolveScope(raw)
  try {
    return { path, isFolder: (await lstat(path)).isDirectory() }
  } catch (error) {
    if (isMissing(error)) throw new FileFailure('NotFound', `path not found: ${shownPath(raw)}`)
    throw error
  }
}

export interface WalkOptions {
  /** Where to look: absolute, links resolved, such as `readPolicy.resolveScope` gives it. A file is its own only entry. */
  readonly start: string
  /** Only what matches; relative to `start`, checked by `checkGlob`. Default: everything below. */
  readonly glob?: string
  /** Default false: a name that begins with a dot is met only by a glob that spells the dot out. */
  readonly includeHidden?: boolean
  readonly signal: AbortSignal
  /** When to give up, in ms since 1970. */
  readonly deadline?: number
}

export interface WalkEntry {
  /** Absolute. */
  readonly path: string
  readonly kind: 'file' | 'folder'
  /** The entry is a link; `target` is where it leads, which lies inside the root and may be read. Links are not entered. */
  readonly link: boolean
  /** `path` with links resolved. */
  readonly target: string
}

/**
 * The one walker of all file tools: readable files and folders below a place, those of a folder together and
 * sorted by name, then folder by folder. What it passes over is what ripgrep passes over by default, with the root as the
 * whole world: hidden names, and what `.gitignore` (with or without `.git`), `.ignore` and `.rgignore` files of the root
 * and below say. Ignore files above the root or of the user are not read; to ripgrep this is
 * `--no-ignore-parent --no-ignore-global --no-ignore-exclude --no-require-git`, from the root. `start` and what a glob
 * spells out without wildcards is never ignored. The harness's own folder, pipes, sockets, devices and links out of the
 * root never come. A folder that cannot be read, or is gone, is passed over.
 *
 * Keeps one folder's names in memory at a time, and the folders still to be visited.
 * @throws DeadlinePassed; the signal's reason when aborted.
 */
export async function* walk(workspace: Workspace, options: WalkOptions): AsyncGenerator<WalkEntry, void, undefined> {
  const { start, glob } = options
  const matcher = glob === undefined ? undefined : compileGlob(glob)
  const stats = await lstat(start)
  if (!stats.isDirectory()) {
    const fits = matcher?.step(matcher.start, basename(start)).matched ?? true
    if (!fits || !stats.isFile() || !workspace.readPolicy.covers(start)) return
    yield { path: start, kind: 'file', link: false, target: start }
    return
  }
  const giveWay = eventLoopYield()
  let met = 0
  const open: Visit[] = [await firstVisit(workspace, start, matcher)]
  for (let visit = open.pop(); visit !== undefined; visit = open.pop()) {
    const below: Visit[] = []
    for (const found of await entriesOf(workspace, visit, { ...options, matcher, giveWay })) {
      if (++met % NAMES_BETWEEN_BREATHS === 0) await giveWay()
      requireTime(options)
      if (found.visit !== undefined) below.push(found.visit)
      const entry = found.matched ? await entryOf(workspace, found) : undefined
      if (entry !== undefined) yield entry
    }
    open.push(...below.reverse())
  }
}

/** A folder to look into. */
interface Visit {
  readonly path: string
  /** Names from the root to it. */
  readonly segments: readonly string[]
  readonly scope: IgnoreScope | undefined
  readonly state: GlobState | undefined
  readonly isStart: boolean
}

interface Found {
  readonly path: string
  readonly type: EntryType
  readonly matched: boolean
  /** Set for a folder that is worth looking into. */
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
        scopeOf(folder, await readdir(folder.at('.')), { depth, parent: scope }),
      )
    } catch (error) {
      if (!isPassedOver(error)) throw error
    }
  }
  return { path: start, segments, scope, state: matcher?.start, isStart: true }
}

async function entriesOf(workspace: Workspace, visit: Visit, options: Matching): Promise<Found[]> {
  requireTime(options)
  try {
    return await withFolder(workspace, visit.path, async (folder) => {
      const entries = await readdir(folder.at('.'), { withFileTypes: true })
      const names = entries.map(({ name }) => name)
      const scope = await scopeOf(folder, names, { depth: visit.segments.length, parent: visit.scope })
      entries.sort((left, right) => (left.name < right.name ? -1 : 1))
      const found: Found[] = []
      for (const [index, entry] of entries.entries()) {
        if (index % NAMES_BETWEEN_BREATHS === 0) await options.giveWay()
        const type = typeOf(entry) ?? (await typeAt(folder, entry.name))
        if (type === undefined) continue
        const each = foundAs(workspace, { ...visit, scope }, { name: entry.name, type, matching: options })
        if (each !== undefined) found.push(each)
      }
      return found
    })
  } catch (error) {
    if (visit.isStart || !isPassedOver(error)) throw error
    return []
  }
}

/** A name in a folder, or nothing when it is hidden, ignored, or no part of what is looked for. */
function foundAs(
  workspace: Workspace,
  folder: Visit,
  {
    name,
    type,
    matching: { matcher, includeHidden = false },
  }: { readonly name: string; readonly type: EntryType; readonly matching: Matching },
): Found | undefined {
  const path = join(folder.path, name)
  if (workspace.isOwn(path)) return undefined
  const isFolder = type === 'folder'
  const segments = [...folder.segments, name]
  const verdict = ignoreVerdict(folder.scope, segments, isFolder)
  const mustBeNamed = name.startsWith('.') && !includeHidden && verdict !== 'shown'
  if (mustBeNamed && matcher === undefined) return undefined
  const state = folder.state && matcher?.step(folder.state, name, mustBeNamed)
  if (verdict === 'ignored' && state?.named !== true) return undefined

  const { readPolicy } = workspace
  const covered = readPolicy.covers(path)
  const enter = isFolder && (state?.open ?? true) && (covered || readPolicy.leadsTo(path))
  const matched = covered && (state?.matched ?? true)
  if (!enter && !matched) return undefined
  const visit = enter ? { path, segments, scope: folder.scope, state, isStart: false } : undefined
  return { path, type, matched, visit }
}

async function entryOf(workspace: Workspace, { path, type }: Found): Promise<WalkEntry | undefined> {
  if (type !== 'link') return { path, kind: type, link: false, target: path }
  try {
    const target = await realpath(path)
    if (!workspace.readPolicy.covers(target) || workspace.isOwn(target)) return undefined
    const stats = await lstat(target)
    if (stats.isDirectory()) return { path, kind: 'folder', link: true, target }
    return stats.isFile() ? { path, kind: 'file', link: true, target } : undefined
  } catch (error) {
    if (isSystemError(error)) return undefined
    throw error
  }
}

function typeOf(entry: Dirent): EntryType | undefined {
  if (entry.isFile()) return 'file'
  if (entry.isDirectory()) return 'folder'
  return entry.isSymbolicLink() ? 'link' : undefined
}

/** Some file systems do not say what an entry is when they list it; what is neither of the three is passed over. */
async function typeAt(folder: Folder, name: string): Promise<EntryType | undefined> {
  try {
    const stats = await lstat(folder.at(name))
    if (stats.isFile()) return 'file'
    if (stats.isDirectory()) return 'folder'
    return stats.isSymbolicLink() ? 'link' : undefined
  } catch (error) {
    if (isSystemError(error)) return undefined
    throw error
  }
}

async function scopeOf(
  folder: Folder,
  names: readonly string[],
  { depth, parent }: { readonly depth: number; readonly parent: IgnoreScope | undefined },
): Promise<IgnoreScope | undefined> {
  const present = IGNORE_FILES.filter((file) => names.includes(file))
  if (present.length === 0) return parent
  const rules: Partial<Record<IgnoreFileName, readonly IgnoreRule[]>> = {}
  for (const file of present) rules[file] = await rulesIn(folder, file)
  return { parent, depth, rules }
}

async function rulesIn(folder: Folder, file: IgnoreFileName): Promise<readonly IgnoreRule[]> {
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
    if (isPassedOver(error)) return []
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

/** Gone, changed under our hands, or not ours to read. Being out of file descriptors is none of these. */
function isPassedOver(error: unknown): boolean {
  if (error instanceof PathValidationError || error instanceof FileFailure) return true
  return isSystemError(error, 'ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'ENXIO', 'EISDIR')
}

function requireTime({ signal, deadline }: WalkOptions): void {
  signal.throwIfAborted()
  if (deadline !== undefined && Date.now() > deadline) throw new DeadlinePassed()
}
