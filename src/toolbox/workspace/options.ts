import { normalize } from 'node:path'
import { invalidOptions, parse } from '#contracts/parse.js'
import { boolean, either, filledString, integer, list, milliseconds, oneOf, partial, string } from '#util/validate.js'
import type { Complete, Given } from '#util/validate.js'
import { PathValidationError } from './file-failure.js'
import { globProblem } from '#util/glob.js'
import { pathProblem, shownPath } from './path-text.js'
import type { ProtectedFiles } from './protection.js'

/** Options of the file tools; all optional. */
export interface FileToolOptions {
  /** Folder that the tools cannot leave; created if absent, `~` is the home folder. Default: the harness's root. */
  readonly root?: string | undefined
  /** Files and folders that may be read, inside the root. Default: all of it. */
  readonly readPaths?: readonly string[] | undefined
  /** Files and folders that may be written, inside the root. Default: all of it except the harness's own folder. */
  readonly writePaths?: readonly string[] | undefined
  /**
   * Files that may not be read, and files that may not be written, whatever the paths above say: globs in the syntax of
   * `.gitignore`, from the root, with `!` for exceptions; names match whatever their case, and through links. Their names are
   * listed. A list replaces the default one, `PROTECTED_FILES.read` or `.write`; `false` protects nothing. Default: files
   * that contain secrets may be neither read nor written, and files that run programs later may not be written.
   */
  readonly protect?: Partial<ProtectedFiles> | false | undefined
  /**
   * `edit`, and `write` over an existing file, fail unless the model has read the file in its conversation, or written it, and
   * the file has not changed since then. Applies if the run has the tool `read`. Default true.
   */
  readonly requireRead?: boolean | undefined
  /** Folder inside the root for the full text of results that are too long for a model. Default `.thinharness/outputs`. */
  readonly outputDir?: string | undefined
  /** Most files in `outputDir`; the oldest is removed first. Default 1,000. */
  readonly maxOutputFiles?: number | undefined
  /** Longest result of `read`, in characters. Default 40,000. */
  readonly maxReadChars?: number | undefined
  /** Largest file that `read` shows without a `limit`, in bytes. Default 1,000,000. */
  readonly maxReadBytes?: number | undefined
  /** Longest result of a search tool, in characters. Default 40,000. */
  readonly maxToolChars?: number | undefined
  /** Longest line that `search` shows, in characters. Default 180. */
  readonly maxSearchLineChars?: number | undefined
  /** Longest time that one search, or reading one PDF or Word document, may take, in ms. Default 30,000. */
  readonly searchTimeoutMs?: number | undefined
  /** Relative globs that `search` skips. Default: none. */
  readonly excludeGlobs?: readonly string[] | undefined
  /** The ripgrep program for `search`; `false` for the built-in engine. Default: the one that is installed. */
  readonly ripgrep?: string | false | undefined
}

export type FileToolLimits = FileToolOptions & typeof DEFAULTS

const DEFAULTS: Complete<
  Omit<FileToolOptions, 'root' | 'readPaths' | 'writePaths' | 'protect' | 'outputDir' | 'ripgrep'>
> = {
  requireRead: true,
  maxOutputFiles: 1_000,
  maxReadChars: 40_000,
  maxReadBytes: 1_000_000,
  maxToolChars: 40_000,
  maxSearchLineChars: 180,
  searchTimeoutMs: 30_000,
  excludeGlobs: [],
}

const paths = list(string, 'a list of paths')

const globs = list(filledString, 'a list of globs')

const PROTECT = either(oneOf(false), partial<Partial<ProtectedFiles>>({ read: globs, write: globs }))

const OPTIONS = partial<FileToolOptions>({
  root: filledString,
  readPaths: paths,
  writePaths: paths,
  protect: PROTECT,
  requireRead: boolean,
  outputDir: filledString,
  maxOutputFiles: integer(1),
  maxReadChars: integer(1),
  maxReadBytes: integer(1),
  maxToolChars: integer(1),
  maxSearchLineChars: integer(1),
  searchTimeoutMs: milliseconds,
  excludeGlobs: list(string, 'a list of relative globs'),
  ripgrep: either(filledString, oneOf(false)),
})

/** The options with their defaults. Throws as `parseFileToolOptions`. */
export function fileToolLimits(options: FileToolOptions): FileToolLimits {
  return { ...DEFAULTS, ...parseFileToolOptions(options) }
}

/**
 * A copy of the options without those that are `undefined`. Throws `invalid_options`, naming the option, the expected and the
 * given value, and `PathValidationError` for paths that leave any root.
 */
export function parseFileToolOptions(options: unknown): Given<FileToolOptions> {
  const given = parse(OPTIONS, options, 'the file tools')
  for (const glob of given.excludeGlobs ?? []) checkGlob('excludeGlobs', glob, glob.replace(/^!/, ''))
  checkProtect(given.protect)
  checkAllowList('read paths', given.readPaths)
  checkAllowList('write paths', given.writePaths)
  checkAllowList('output folder', given.outputDir === undefined ? undefined : [given.outputDir])
  return given
}

/** The part of the check that needs no root, which may be known only when a tool runs. */
function checkAllowList(label: string, paths: readonly string[] | undefined): void {
  if (paths?.length === 0) throw new PathValidationError(`Expected the ${label} to have at least one path.`)
  for (const path of paths ?? []) {
    const problem = pathProblem(path) ?? (/^\.\.(?:[\\/]|$)/.test(normalize(path)) ? 'path escapes root' : undefined)
    if (problem !== undefined) throw new PathValidationError(`${problem}: ${shownPath(path)}`)
  }
}

/** A leading `/` stands for the root. Throws `invalid_options`. */
function checkProtect(protect: FileToolOptions['protect']): void {
  if (protect === undefined || protect === false) return
  const globs = [...(protect.read ?? []), ...(protect.write ?? [])]
  for (const glob of globs) checkGlob('protect', glob, glob.replace(/^!?\/?/, ''))
}

function checkGlob(option: string, glob: string, pattern: string): void {
  const problem = globProblem(pattern)
  if (problem === undefined) return
  throw invalidOptions(
    `Expected \`${option}\` of the file tools to be a list of relative globs, got \`${glob}\`: ${problem}.`,
  )
}
