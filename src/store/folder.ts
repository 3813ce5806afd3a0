import { mkdirSync, statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { dirname } from 'node:path'

/** The names in a folder; none if it does not exist. */
export async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
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
    if (codeOf(error) === 'ENOENT') return false
    if (codeOf(error) !== 'EEXIST') throw error
    const found = statSync(folder, { throwIfNoEntry: false })
    // Another process may have removed it again.
    if (found === undefined || found.isDirectory()) return true
    throw error
  }
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code
}
