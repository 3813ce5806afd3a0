import { realpathSync, readlinkSync, statSync } from 'node:fs'
import { realpath, stat } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, normalize, parse, resolve, sep } from 'node:path'
import { isMissing, isSystemError, PathValidationError } from './file-failure.js'
import { globProblem } from '#util/glob.js'
import { expandHome, pathProblem, shownPath } from './path-text.js'
import type { Protection } from './protection.js'

const MAX_LINKS = 40

/** A file, or a folder with everything below it, that a policy allows. */
interface AllowedEntry {
  readonly path: string
  readonly isFile: boolean
}

/** Additions of a policy to its allow-list. */
export interface PathRules {
  /** Name of the allow-list in messages, such as `read paths`. */
  readonly label: string
  /** A folder that is allowed only if an entry of the allow-list is inside it. */
  readonly reserved?: string | undefined
  /** Files that are not allowed, and their use in messages: `reading`. */
  readonly protection?: { readonly against: string; readonly files: Protection } | undefined
}

/**
 * The paths that a tool may use: those inside `root` that the allow-list covers and that are not protected. Links and `..` are resolved before paths are
 * compared. A resolved path can be changed before it is opened: `safe-open.ts` checks the opened file again.
 */
export class PathPolicy {
  readonly root: string
  readonly #label: string
  readonly #entries: readonly AllowedEntry[]
  readonly #reserved: string | undefined
  readonly #protection: PathRules['protection']

  /**
   * @param root Absolute, links resolved.
   * @param allowed Paths inside `root`, relative to it or absolute; without them everything inside `root` is allowed.
   * @throws PathValidationError if an entry is outside `root`, or the list is empty.
   */
  constructor(root: string, allowed: readonly string[] | undefined, { label, reserved, protection }: PathRules) {
    this.root = root
    this.#label = label
    if (allowed?.length === 0) throw new PathValidationError(`Expected \`${label}\` to have at least one path.`)
    this.#entries = (allowed ?? ['.']).map((entry) => allowedEntry(root, entry))
    this.#reserved = reserved
    this.#protection = protection
  }

  /**
   * The absolute path of `raw`, links resolved; it need not exist.
   * @throws PathValidationError if it is malformed, outside the root, not covered by the allow-list, or protected.
   */
  async resolve(raw: string): Promise<string> {
    const path = await this.#locate(raw)
    this.requireCovered(path, raw)
    return path
  }

  /** @throws PathValidationError, which names `raw` and the reason, if `covers(path)` is false, or a link is protected. */
  requireCovered(path: string, raw: string): void {
    this.#requireListed(path, raw)
    this.#requireUnprotected(path, raw)
  }

  /** As `resolve`, for the start of a search: a folder above an allowed path is sufficient, each entry is checked itself. */
  async resolveScope(raw: string): Promise<string> {
    const path = await this.resolveNames(raw)
    this.#requireUnprotected(path, raw)
    return path
  }

  /** As `resolveScope`, if only names are to be shown: those of protected files may be. */
  async resolveNames(raw: string): Promise<string> {
    const path = await this.#locate(raw)
    if (!this.leadsTo(path)) this.#requireListed(path, raw)
    return path
  }

  /** True if a path (absolute, links resolved) is allowed. Does no I/O. */
  covers(path: string): boolean {
    return this.lists(path) && this.#ruleOf(path) === undefined
  }

  /** True if the name of a path (absolute, links resolved) may be shown: it is allowed, or would be if it were not protected. */
  lists(path: string): boolean {
    return this.#entries.some(
      (entry) => includesPath(entry, path) && (!this.#isReserved(path) || this.#isReserved(entry.path)),
    )
  }

  /** True if an allowed path is below a folder (absolute, links resolved). */
  leadsTo(folder: string): boolean {
    return this.#entries.some((entry) => isInside(folder, entry.path))
  }

  /** Globs of protected files, in the syntax of gitignore and from the root; `covers` knows the others too. */
  get exclusions(): readonly string[] {
    return this.#protection?.files.exclusions ?? []
  }

  /** The existing entries of the allow-list, absolute, without those below another one and protected ones. */
  async existingRoots(): Promise<string[]> {
    const open = this.#entries.filter(({ path }) => this.#ruleOf(path) === undefined)
    const paths = [...new Set(open.map(({ path }) => path))]
    const outermost = paths.filter((path) => !paths.some((other) => isInside(other, path)))
    const existing = await Promise.all(outermost.map(targetExists))
    return outermost.filter((_, index) => existing[index])
  }

  /** @throws PathValidationError if a glob is absolute, climbs with `..`, or is malformed. */
  checkGlob(selector: string): void {
    const problem = globProblem(selector)
    if (problem !== undefined) throw new PathValidationError(`${problem}: ${shownPath(selector)}`)
  }

  async #locate(raw: string): Promise<string> {
    return requireInside(this.root, await resolveLinks(absolutePath(this.root, raw), raw), raw)
  }

  #requireListed(path: string, raw: string): void {
    if (!this.lists(path)) throw new PathValidationError(`path is not in the ${this.#label}: ${shownPath(raw)}`)
  }

  /** The path as written counts too: a protected name may be a link to a file with another one. */
  #requireUnprotected(path: string, raw: string): void {
    const rule = this.#ruleOf(path) ?? this.#ruleOf(normalize(absolutePath(this.root, raw)))
    if (rule === undefined) return
    const against = this.#protection?.against ?? ''
    throw new PathValidationError(
      `path is protected against ${against} by the rule \`${rule}\`: ${shownPath(raw)}. Only the host can open it, with the option \`protect\`.`,
    )
  }

  #ruleOf(path: string): string | undefined {
    if (this.#protection === undefined || !isInside(this.root, path)) return undefined
    return this.#protection.files.ruleOf(path.slice(this.root.length).split(sep).filter(Boolean))
  }

  #isReserved(path: string): boolean {
    return this.#reserved !== undefined && (path === this.#reserved || isInside(this.#reserved, path))
  }
}

/**
 * The absolute path of `raw`, links resolved; it need not exist.
 * @param root Absolute, links resolved.
 * @throws PathValidationError if it is malformed or outside the root.
 */
export function containedPath(root: string, raw: string): string {
  return requireInside(root, resolveLinksSync(absolutePath(root, raw), raw), raw)
}

/** True if `path` is below `folder`; both absolute and normalized. */
export function isInside(folder: string, path: string): boolean {
  if (path.length <= folder.length || !path.startsWith(folder)) return false
  return folder.endsWith(sep) || path[folder.length] === sep
}

function allowedEntry(root: string, raw: string): AllowedEntry {
  const path = containedPath(root, raw)
  return { path, isFile: statSync(path, { throwIfNoEntry: false })?.isFile() ?? false }
}

function absolutePath(root: string, raw: string): string {
  const problem = pathProblem(raw)
  if (problem !== undefined) throw new PathValidationError(`${problem}: ${shownPath(raw)}`)
  const expanded = expandHome(raw)
  if (isAbsolute(expanded)) return expanded
  // Not joined: `link/..` is the folder above the link's target, which is known only to the file system.
  return process.platform === 'win32' ? resolve(root, expanded) : `${root}${sep}${expanded}`
}

function requireInside(root: string, path: string, raw: string): string {
  if (path === root || isInside(root, path)) return path
  throw new PathValidationError(`path escapes root: ${shownPath(raw)}`)
}

function includesPath(entry: AllowedEntry, path: string): boolean {
  return path === entry.path || (!entry.isFile && isInside(entry.path, path))
}

async function targetExists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}

/** The native `realpath` also returns the true case of names on file systems that ignore case. */
async function resolveLinks(path: string, raw: string): Promise<string> {
  try {
    return await realpath(path)
  } catch (error) {
    if (isMissing(error)) return resolveLinksSync(path, raw)
    throw resolvingError(error, raw)
  }
}

/** As `realpath`, for a path whose last parts need not exist. A link to a missing file is followed too. */
function resolveLinksSync(path: string, raw: string): string {
  try {
    return realpathSync.native(path)
  } catch (error) {
    if (!isMissing(error)) throw resolvingError(error, raw)
  }
  let current = parse(path).root
  let links = 0
  const open = pathNames(path).reverse()
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    const next = name === '..' ? dirname(current) : join(current, name)
    const target = name === '..' ? undefined : linkTarget(next)
    if (target === undefined) {
      current = next
      continue
    }
    if (++links > MAX_LINKS) throw new PathValidationError(`path has too many links: ${shownPath(raw)}`)
    if (isAbsolute(target)) current = parse(target).root
    open.push(...pathNames(target).reverse())
  }
  return withTrueCase(current, raw)
}

function pathNames(path: string): string[] {
  const names = path.slice(parse(path).root.length).split(sep === '/' ? '/' : /[\\/]/)
  return names.filter((name) => name !== '' && name !== '.')
}

/** A path without links, its existing part in the case of the file system. */
function withTrueCase(path: string, raw: string): string {
  try {
    return realpathSync.native(path)
  } catch (error) {
    if (!isMissing(error) || dirname(path) === path) throw resolvingError(error, raw)
    return join(withTrueCase(dirname(path), raw), basename(path))
  }
}

function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

function resolvingError(error: unknown, raw: string): unknown {
  return isSystemError(error, 'ELOOP') ? new PathValidationError(`path has too many links: ${shownPath(raw)}`) : error
}
