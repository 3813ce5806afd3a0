import type { Dirent } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { isSystemError } from '../workspace/failure.js'
import { shownPath } from '../workspace/path-text.js'
import { PASSED_OVER } from './discover.js'

const MAX_ENTRIES = 200
const MAX_DEPTH = 20

/** The files below a folder, one a line, folder by folder in order; links are named, not followed. */
export async function skillTree(folder: string): Promise<string[]> {
  const lines: string[] = []
  const complete = await addFiles({ folder, shown: '', depth: 0, lines })
  return complete ? lines : [...lines, `(only the first ${MAX_ENTRIES} are listed)`]
}

interface Branch {
  readonly folder: string
  /** From the top: empty, or with `/` at its end. */
  readonly shown: string
  readonly depth: number
  readonly lines: string[]
}

/** Whether there was room for all. */
async function addFiles({ folder, shown, depth, lines }: Branch): Promise<boolean> {
  for (const entry of await entriesOf(folder)) {
    if (PASSED_OVER.has(entry.name)) continue
    if (lines.length === MAX_ENTRIES) return false
    const name = shown + entry.name
    if (!entry.isDirectory()) {
      lines.push(shownPath(name))
      continue
    }
    const below: Branch = { folder: join(folder, entry.name), shown: `${name}/`, depth: depth + 1, lines }
    if (depth === MAX_DEPTH || !(await addFiles(below))) return false
  }
  return true
}

/** A folder that cannot be read, or is gone, has none. */
async function entriesOf(folder: string): Promise<Dirent[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true })
    return entries.sort((left, right) => (left.name < right.name ? -1 : 1))
  } catch (error) {
    if (isSystemError(error)) return []
    throw error
  }
}
