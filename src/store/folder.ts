import { closeSync, constants, fstatSync, mkdirSync, openSync, statSync, writeSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { dirname } from 'node:path'

/** The names in a folder; none if it does not exist. */
export async function namesIn(folder: string): Promise<readonly string[]> {
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
