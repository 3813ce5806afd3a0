import { normalize } from 'node:path'
import { HarnessError } from '../../contracts/errors.js'
import { unknownKey } from '../../util/unknown-key.js'
import { PathValidationError } from './failure.js'
import { globProblem } from './glob-pattern.js'
import { pathProblem, shownPath } from './path-text.js'

/** What the file tools can be told; every field is optional. */
export interface FileToolOptions {
  /** Folder that the tools work in and cannot leave; made if absent, `~` is the home folder. Default: the harness's root. */
  readonly root?: string
  /** Files and folders that may be read, inside the root. Default: all of it. */
  readonly readPaths?: readonly string[]
  /** Files and folders that may be written, inside the root. Default: all of it but the harness's own folder. */
  readonly writePaths?: readonly string[]
  /** Folder, inside the root, for the full text of results that are too long for a model. Default `.thinharness/outputs`. */
  readonly outputDir?: string
  /** Files kept in `outputDir`; with one more the oldest goes. Default 1,000. */
  readonly maxOutputFiles?: number
  /** Longest result of `read`, in characters. Default 40,000. */
  readonly maxReadChars?: number
  /** Largest file that `read` shows without a `limit`, in bytes. Default 1,000,000. */
  readonly maxReadBytes?: number
  /** Longest result of a search tool, in characters. Default 40,000. */
  readonly maxToolChars?: number
  /** Longest line that `search` shows, in characters. Default 180. */
  readonly maxSearchLineChars?: number
  /** Longest time that one search may take, in ms. Default 30,000. */
  readonly searchTimeoutMs?: number
  /** What `search` passes over: relative globs. Default none. */
  readonly excludeGlobs?: readonly string[]
  /** The ripgrep program for `search`; `false` for the built-in engine. Default: the one that is found. */
  readonly ripgrep?: string | false
}

/** The options with their defaults, but for those that need a root. */
export interface FileToolLimits {
  readonly maxOutputFiles: number
  readonly maxReadChars: number
  readonly maxReadBytes: number
  readonly maxToolChars: number
  readonly maxSearchLineChars: number
  readonly searchTimeoutMs: number
  readonly excludeGlobs: readonly string[]
  readonly ripgrep: string | false | undefined
}

const COUNTS = [
  'maxOutputFiles',
  'maxReadChars',
  'maxReadBytes',
  'maxToolChars',
  'maxSearchLineChars',
  'searchTimeoutMs',
] as const

const KNOWN = ['root', 'readPaths', 'writePaths', 'outputDir', 'excludeGlobs', 'ripgrep', ...COUNTS]

/** @throws HarnessError `invalid_options`, naming the option, what was expected and what came. */
export function checkFileToolOptions(options: FileToolOptions): FileToolLimits {
  const unknown = unknownKey(options, KNOWN, 'option of the file tools')
  if (unknown !== undefined) throw invalid(unknown)
  for (const key of COUNTS) checkCount(key, options[key])
  for (const key of ['root', 'outputDir'] as const) checkPath(key, options[key])
  for (const key of ['readPaths', 'writePaths', 'excludeGlobs'] as const) checkTexts(key, options[key])
  for (const glob of options.excludeGlobs ?? []) checkExclusion(glob)
  checkAllowList('read paths', options.readPaths)
  checkAllowList('write paths', options.writePaths)
  checkAllowList('output folder', options.outputDir === undefined ? undefined : [options.outputDir])
  checkRipgrep(options.ripgrep)
  return {
    maxOutputFiles: options.maxOutputFiles ?? 1_000,
    maxReadChars: options.maxReadChars ?? 40_000,
    maxReadBytes: options.maxReadBytes ?? 1_000_000,
    maxToolChars: options.maxToolChars ?? 40_000,
    maxSearchLineChars: options.maxSearchLineChars ?? 180,
    searchTimeoutMs: options.searchTimeoutMs ?? 30_000,
    excludeGlobs: options.excludeGlobs ?? [],
    ripgrep: options.ripgrep,
  }
}

function checkCount(key: string, value: unknown): void {
  if (value === undefined || (Number.isSafeInteger(value) && Number(value) >= 1)) return
  throw invalid(`Expected \`${key}\` to be a whole number from 1 up, got ${shown(value)}.`)
}

function checkPath(key: string, value: unknown): void {
  if (value === undefined || (typeof value === 'string' && value !== '')) return
  throw invalid(`Expected \`${key}\` to be the path of a folder, got ${shown(value)}.`)
}

function checkTexts(key: string, value: unknown): void {
  if (value === undefined) return
  const items: readonly unknown[] = Array.isArray(value) ? value : [undefined]
  if (items.every((item) => typeof item === 'string')) return
  throw invalid(`Expected \`${key}\` to be a list of texts, got ${shown(value)}.`)
}

/** What can be said without the root, which may only be known when a tool runs. */
function checkAllowList(label: string, paths: readonly string[] | undefined): void {
  if (paths?.length === 0) throw new PathValidationError(`Expected the ${label} to have at least one path.`)
  for (const path of paths ?? []) {
    const problem = pathProblem(path) ?? (/^\.\.(?:[\\/]|$)/.test(normalize(path)) ? 'path escapes root' : undefined)
    if (problem !== undefined) throw new PathValidationError(`${problem}: ${shownPath(path)}`)
  }
}

function checkExclusion(glob: string): void {
  const problem = globProblem(glob.replace(/^!/, ''))
  if (problem !== undefined)
    throw invalid(`Expected \`excludeGlobs\` to hold relative globs, got \`${glob}\`: ${problem}.`)
}

function checkRipgrep(value: unknown): void {
  if (value === undefined || value === false || (typeof value === 'string' && value !== '')) return
  throw invalid(`Expected \`ripgrep\` to be the path of a program or \`false\`, got ${shown(value)}.`)
}

function shown(value: unknown): string {
  if (typeof value === 'string') return `\`${value}\``
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : `a value of type ${typeof value}`
}

function invalid(message: string): HarnessError {
  return new HarnessError('invalid_options', message)
}
