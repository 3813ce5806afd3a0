import type { LogRef } from '#core/log/ref.js'
import { createHash } from 'node:crypto'
import { closeSync, constants, fstatSync, mkdirSync, openSync, statSync, writeSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** The names in a folder; none if it does not exist. */
export async function fileNamesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return []
    throw error
  }
}

/** Creates a folder and those above it. Node's own `recursive` does not return if a file system refuses with `ENOENT`. */
export function makeFolder(folder: string): void {
  if (makeOne(folder)) return
  const above = dirname(folder)
  if (above !== folder) makeFolder(above)
  if (!makeOne(folder)) mkdirSync(folder)
}

/** False if the folder above it does not exist. */
function makeOne(folder: string): boolean {
  try {
    mkdirSync(folder)
    return true
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return false
    if (errorCode(error) !== 'EEXIST') throw error
    const stats = statSync(folder, { throwIfNoEntry: false })
    // Another process may have removed it again.
    if (stats === undefined || stats.isDirectory()) return true
    throw error
  }
}

function errorCode(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code
}

/**
 * Writes a small JSON text over that of a file by one call, and spaces over the rest: to cut a file and to fill it again costs far
 * more, and readers would see it empty.
 */
export function replaceText(path: string, text: string): void {
  const fd = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600)
  try {
    const bytes = Buffer.from(text)
    const rest = fstatSync(fd).size - bytes.length
    writeSync(fd, rest > 0 ? Buffer.concat([bytes, Buffer.alloc(rest, ' ')]) : bytes, 0, undefined, 0)
  } finally {
    closeSync(fd)
  }
}

/** The files and folders of one log. Those of runs are in the folder itself, those of threads in `threads`. */
export interface LogPaths {
  /** The events, one JSON document a line. */
  readonly log: string
  /** Folder of the claims. */
  readonly lease: string
  /** Folder of the posts. */
  readonly inbox: string
  /** The references from other logs, one a line. */
  readonly references: string
  /** The digest that came with the last events of a thread. */
  readonly digest: string
}

export function pathsOf(folder: string, { kind, id }: LogRef): LogPaths {
  const base = join(folderOf(folder, kind), fileNameOf(id))
  return {
    log: `${base}.jsonl`,
    lease: `${base}.lease`,
    inbox: `${base}.inbox`,
    references: `${base}.references`,
    digest: `${base}.digest.json`,
  }
}

export function folderOf(folder: string, kind: LogRef['kind']): string {
  return kind === 'run' ? folder : join(folder, 'threads')
}

/** Bytes of a file's name that every file system takes, with room for the ending. */
const LONGEST_NAME = 240

/**
 * The name of a run's file, without its ending. Characters that are not safe in every file system, such as upper case, are
 * written as their codes; a name that becomes too long ends in a digest of the whole.
 */
export function fileNameOf(runId: string): string {
  const bytes = [...Buffer.from(runId)].map((byte) => {
    const character = String.fromCharCode(byte)
    return /[a-z0-9_-]/.test(character) ? character : `%${byte.toString(16).padStart(2, '0')}`
  })
  const name = bytes.join('')
  if (name.length <= LONGEST_NAME) return name
  const digest = createHash('sha256').update(runId).digest('hex')
  return `${name.slice(0, LONGEST_NAME - digest.length - 1)}~${digest}`
}

/** The run of a file, by the file's name without its ending; undefined if the name was shortened, or belongs to no log. */
export function runIdOf(name: string): string | undefined {
  if (!/^(?:[a-z0-9_-]|%[0-9a-f]{2})+$/.test(name)) return undefined
  const bytes = name.replace(/%(..)/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
  return Buffer.from(bytes, 'latin1').toString()
}
