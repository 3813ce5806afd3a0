import type * as Ripgrep from '@vscode/ripgrep'
import { environmentOf } from '../process/environment.js'
import { findProgram } from '../process/find-program.js'
import { DeadlinePassed, fileFailureOf, invalidInput } from '../workspace/file-failure.js'
import { IGNORE_FILES } from '../workspace/ignore-rules.js'
import { isInside } from '../workspace/path-policy.js'
import { openFolder, statIn } from '../workspace/safe-open.js'
import type { Workspace } from '../workspace/workspace.js'
import { OWN_FOLDER } from '../workspace/workspace.js'
import { builtinEngine, isWanted } from './builtin-engine.js'
import type { EngineEnd, FileCount, FileType, SearchEngine, SearchRequest } from './engine.js'
import { MAX_MATCHES_COUNTED } from './match-file.js'
import { escapeLiteral } from './pattern.js'
import { messageOf } from '#contracts/errors.js'
import { segmentPattern } from '#util/glob.js'
import { isObject } from '#util/json.js'
import { importInstalled } from '#util/platform/node.js'
import { didYouMean } from '#util/suggest.js'
import { LONGEST_TIMER_MS } from '#util/timeout.js'
import { isUtf8 } from 'node:buffer'
import { spawn } from 'node:child_process'
import type { ChildProcess, ChildProcessByStdio } from 'node:child_process'
import { access } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import type { Readable } from 'node:stream'

/** The program could not be started. */
export class RipgrepUnavailable extends Error {
  override readonly name = 'RipgrepUnavailable'
}

const MAX_ERROR_CHARS = 2_000
const MAX_TYPE_LIST_CHARS = 100_000
const TYPE_LIST_MS = 10_000

/**
 * ripgrep counts the matches of files. The built-in engine searches instead if ripgrep refuses a pattern, and if there are
 * ignore files both above the starts and above the root: ripgrep reads all of them or none.
 */
export function ripgrepEngine(program: string): SearchEngine {
  return {
    name: 'ripgrep',
    fileType: async (name) => findFileType(await readTypeList(program), name),
    async search(request, onFile) {
      const parents = await parentsToUse(request)
      if (parents === 'impossible') return builtinEngine.search(request, onFile)
      const args = ripgrepArguments(request, parents === 'all')
      return (await countWith([program, args], request, onFile)) ?? builtinEngine.search(request, onFile)
    },
  }
}

async function readTypeList(program: string): Promise<string> {
  const child = spawn(program, ['--no-config', '--type-list'], {
    env: environmentOf(),
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: TYPE_LIST_MS,
    windowsHide: true,
  })
  const [list] = await Promise.all([readText(child.stdout, MAX_TYPE_LIST_CHARS), waitForExit(child)])
  return list
}

type Program = ChildProcessByStdio<null, Readable, Readable>

interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** Runs ripgrep; `undefined` if it refused the pattern. */
async function countWith(
  [program, args]: readonly [string, readonly string[]],
  request: SearchRequest,
  onFile: (file: FileCount) => void,
): Promise<EngineEnd | undefined> {
  const { time, workspace } = request
  time.check()
  const child = spawn(program, args, {
    cwd: workspace.root,
    env: environmentOf(),
    stdio: ['ignore', 'pipe', 'pipe'],
    windowsHide: true,
  })
  const stopRipgrep = (): void => stopProgram(child)
  const late = new AbortController()
  late.signal.addEventListener('abort', stopRipgrep, { once: true })
  const timer = setTimeout(() => late.abort(), Math.min(time.deadline - Date.now(), LONGEST_TIMER_MS))
  time.signal.addEventListener('abort', stopRipgrep, { once: true })
  try {
    const [isFound, errors, exit] = await Promise.all([
      readCounts(child.stdout, request, onFile),
      readText(child.stderr, MAX_ERROR_CHARS),
      waitForExit(child),
    ])
    time.check()
    // The timer may be a little ahead of the clock.
    if (late.signal.aborted) throw new DeadlinePassed()
    if (exit.code === 2 && PATTERN_ERROR.test(errors)) return undefined
    return await engineEnd(workspace, { ...exit, errors, isFound })
  } finally {
    clearTimeout(timer)
    time.signal.removeEventListener('abort', stopRipgrep)
    stopRipgrep()
  }
}

const PATTERN_ERROR = /^rg: (?:regex parse error:|the literal |compiled regex exceeds size limit)/

/** Reads the output, `<path> NUL <count> LF` for each file. True if there are files that may be shown. */
async function readCounts(
  stdout: Readable,
  request: SearchRequest,
  onFile: (file: FileCount) => void,
): Promise<boolean> {
  let isFound = false
  let rest: Buffer = Buffer.alloc(0)
  for await (const chunk of streamChunks(stdout)) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    let start = 0
    for (;;) {
      const nul = bytes.indexOf(0, start)
      const end = nul === -1 ? -1 : bytes.indexOf(LF, nul)
      if (end === -1) break
      const path = join(request.workspace.root, bytes.toString('utf8', start, nul))
      const matches = Number(bytes.toString('latin1', nul + 1, end))
      if (isUtf8(bytes.subarray(start, nul)) && matches > 0 && isAllowed(request, path)) {
        isFound = true
        onFile({ path, matches })
      }
      start = end + 1
    }
    rest = bytes.subarray(start)
    await request.time.breathe()
  }
  return isFound
}

const LF = 0x0a

/** ripgrep does not know the read policy. The true location of a file is checked before its content is shown. */
function isAllowed(request: SearchRequest, path: string): boolean {
  const { workspace, starts } = request
  if (!starts.includes(path) && (workspace.isOwn(path) || !isWanted(request, path))) return false
  return workspace.readPolicy.covers(path)
}

async function engineEnd(
  workspace: Workspace,
  { code, signal, errors, isFound }: Exit & { readonly errors: string; readonly isFound: boolean },
): Promise<EngineEnd> {
  if (code === null) return { returncode: 2, detail: `the program was ended by ${signal ?? 'a signal'}` }
  const detail = code > 1 ? await confirmErrors(workspace, errors) : ''
  const hasOnlyForeignErrors = code === 2 && errors !== '' && detail === ''
  if (code > 1 && !hasOnlyForeignErrors) return { returncode: code, detail }
  // Files with matches may not be readable by the policy.
  return { returncode: isFound ? 0 : 1, detail: '' }
}

/** `rg: <path>: <problem> (os error 13)`. */
const FILE_ERROR = /^rg: (.+): [^:]+ \(os error \d+\)$/

/**
 * The errors of ripgrep. Errors on files count only if the file exists at its path: others were removed, which is not a
 * problem, or were never inside the root (see `readPage`), and their names must not be shown.
 */
async function confirmErrors(workspace: Workspace, errors: string): Promise<string> {
  const lines = errors.trim().split('\n')
  if (!lines.some((line) => /^rg: .+: ./.test(line))) return errors.trim()
  const confirmed: string[] = []
  for (const line of lines) {
    const path = FILE_ERROR.exec(line)?.[1]
    if (path !== undefined && (await existsInside(workspace, join(workspace.root, path)))) confirmed.push(line)
  }
  return confirmed.join('\n')
}

async function existsInside(workspace: Workspace, path: string): Promise<boolean> {
  if (!workspace.readPolicy.covers(path)) return false
  try {
    const folder = await openFolder(workspace, dirname(path))
    try {
      return (await statIn(folder, basename(path))) !== undefined
    } finally {
      await folder.close()
    }
  } catch (error) {
    if (fileFailureOf(error) === undefined) throw error
    return false
  }
}

/** Also closes its output, which its own child processes may keep open. */
function stopProgram(child: Program): void {
  child.kill('SIGKILL')
  child.stdout.destroy()
  child.stderr.destroy()
}

/** The output until the stream ends or is destroyed. */
async function* streamChunks(stream: Readable): AsyncGenerator<Buffer, void, undefined> {
  try {
    for await (const chunk of stream) yield chunk as Buffer
  } catch (error) {
    if (!(isObject(error) && error['code'] === 'ERR_STREAM_PREMATURE_CLOSE')) throw error
  }
}

async function readText(stream: Readable, maxChars: number): Promise<string> {
  let text = ''
  for await (const chunk of streamChunks(stream)) {
    if (text.length <= maxChars) text += chunk.toString()
  }
  // A line that is cut cannot be classified.
  return text.length > maxChars ? text.slice(0, text.lastIndexOf('\n', maxChars) + 1) : text
}

async function waitForExit(child: ChildProcess): Promise<Exit> {
  return new Promise((resolve, reject) => {
    child.once('error', (error) => reject(new RipgrepUnavailable(`cannot run ripgrep: ${messageOf(error)}`)))
    child.once('close', (code, signal) => resolve({ code, signal }))
  })
}

/**
 * The file type with this name.
 * @param list The output of `rg --type-list`: `md: *.markdown, *.md, …` in each line.
 * @throws FileFailure `InvalidInput`.
 */
function findFileType(list: string, name: string): FileType {
  const types = new Map(
    list.split('\n').map((line) => {
      const [key = '', globs = ''] = line.split(': ')
      return [key, globs.split(', ')]
    }),
  )
  const globs = types.get(name)
  if (globs === undefined || name === '') {
    const hint = didYouMean(name.slice(0, 40), [...types.keys()])
    const problem = `\`${name.slice(0, 40)}\` is not a file type: expected a name such as md, txt, csv, json or py.${hint}`
    throw invalidInput(problem)
  }
  const patterns = globs.map((glob) => segmentPattern(glob))
  // ripgrep would include a hidden file that a type names, such as `.zshrc`.
  const matches = (fileName: string): boolean =>
    !fileName.startsWith('.') && patterns.some((pattern) => pattern.test(fileName))
  return { name, matches }
}

/** The arguments with which ripgrep, run in the root, counts the matching lines in the files of the walker. */
function ripgrepArguments(request: SearchRequest, useParents: boolean): string[] {
  const { query, fileType, exclusions, workspace, starts } = request
  return [
    '--count',
    '--null',
    '--with-filename',
    '--no-config',
    '--no-mmap',
    '--crlf',
    '--no-require-git',
    '--no-ignore-global',
    '--no-ignore-exclude',
    ...(useParents ? [] : ['--no-ignore-parent']),
    `--max-count=${MAX_MATCHES_COUNTED}`,
    query.caseSensitive ? '--case-sensitive' : '--ignore-case',
    ...(fileType === undefined ? [] : [`--type=${fileType.name}`]),
    `--glob=!/${OWN_FOLDER}`,
    // An ignore file with `!` would include hidden names.
    '--glob=!.*',
    ...workspace.readPolicy.exclusions.map((glob) => `--iglob=!${glob}`),
    ...exclusions.globs.map((glob) => `--glob=!${glob}`),
    '--',
    query.literal ? escapeLiteral(query.text) : query.text,
    ...starts.map((start) => relative(workspace.root, start) || '.'),
  ]
}

/**
 * The ignore files above the starts that ripgrep must read. Those inside the root apply; those above it must not. ripgrep
 * reads all or none: `impossible` if there are both.
 */
async function parentsToUse({ workspace, starts }: SearchRequest): Promise<'none' | 'all' | 'impossible'> {
  const { root } = workspace
  const inside = new Set(
    starts.flatMap((start) => foldersAbove(start).filter((folder) => folder === root || isInside(root, folder))),
  )
  if (!(await anyHasRules(inside))) return 'none'
  return (await anyHasRules(foldersAbove(root))) ? 'impossible' : 'all'
}

function foldersAbove(path: string): string[] {
  const folder = dirname(path)
  return folder === path ? [] : [folder, ...foldersAbove(folder)]
}

async function anyHasRules(folders: Iterable<string>): Promise<boolean> {
  const files = [...folders].flatMap((folder) => IGNORE_FILES.map((name) => join(folder, name)))
  const present = await Promise.all(files.map(isAccessible))
  return present.includes(true)
}

async function isAccessible(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}

let installed: Promise<string | undefined> | undefined

/** The ripgrep of this machine: the npm package's, else the one on PATH; `undefined` if there is none. Searched for once. */
export async function findRipgrep(): Promise<string | undefined> {
  installed ??= packagedRipgrep().then((path) => path ?? findProgram(process.platform === 'win32' ? 'rg.exe' : 'rg'))
  return installed
}

/** The import throws if the package is missing, or has no program for this platform. */
async function packagedRipgrep(): Promise<string | undefined> {
  try {
    const { rgPath } = (await importInstalled('@vscode/ripgrep')) as typeof Ripgrep
    return await findProgram(rgPath)
  } catch {
    return undefined
  }
}
