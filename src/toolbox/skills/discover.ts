import type { Dirent } from 'node:fs'
import { readdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { isSystemError } from '../workspace/failure.js'
import { SKILL_FILE } from './skill.js'

export interface Discovery {
  /** Folders with a `SKILL.md`: absolute, links resolved, each once, in order. */
  readonly folders: readonly string[]
  readonly warnings: readonly string[]
}

/** Folders without skills that may be very large. */
export const SKIPPED = new Set(['.git', 'node_modules', '__pycache__', '.venv'])

const MAX_DEPTH = 6
const MAX_FOLDERS = 2_000

/**
 * Finds skills in folders (absolute), level by level, sorted by name. Folders in a skill are parts of it, not skills. A link
 * to a folder is followed only directly in one of `dirs`.
 */
export async function discoverSkills(dirs: readonly string[]): Promise<Discovery> {
  const search = new Search()
  for (const dir of dirs) await search.run(dir)
  return search
}

interface Place {
  readonly path: string
  readonly depth: number
}

class Search implements Discovery {
  readonly folders: string[] = []
  readonly warnings: string[] = []
  readonly #seen = new Set<string>()

  async run(dir: string): Promise<void> {
    const open: Place[] = [{ path: dir, depth: 0 }]
    for (let place = open.shift(); place !== undefined; place = open.shift()) {
      if (this.#seen.size >= MAX_FOLDERS) {
        this.warnings.push(`${dir}: more than ${MAX_FOLDERS} folders; the rest was not searched.`)
        return
      }
      open.push(...(await this.#visit(place)))
    }
  }

  async #visit({ path, depth }: Place): Promise<Place[]> {
    try {
      const folder = await realpath(path)
      if (this.#seen.has(folder)) return []
      this.#seen.add(folder)
      const entries = await readdir(folder, { withFileTypes: true })
      if (entries.some(({ name }) => name === SKILL_FILE)) {
        this.folders.push(folder)
        return []
      }
      if (depth === MAX_DEPTH) return []
      const below = entries.filter((entry) => mayContainSkills(entry, depth)).map(({ name }) => name)
      return below.sort().map((name) => ({ path: join(folder, name), depth: depth + 1 }))
    } catch (error) {
      if (!isSystemError(error)) throw error
      // A link to a file or to a missing path is not a folder.
      if (depth === 0) this.warnings.push(`${path}: the folder cannot be read (${error.code ?? 'unknown error'}).`)
      return []
    }
  }
}

function mayContainSkills(entry: Dirent, depth: number): boolean {
  if (SKIPPED.has(entry.name)) return false
  return entry.isDirectory() || (depth === 0 && entry.isSymbolicLink())
}
