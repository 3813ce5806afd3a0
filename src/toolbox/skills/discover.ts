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

/** Folders that hold no skills, and may hold very much else. */
export const PASSED_OVER = new Set(['.git', 'node_modules', '__pycache__', '.venv'])

const MAX_DEPTH = 6
const MAX_FOLDERS = 2_000

/**
 * Looks for skills in folders (absolute), by name, what lies further up first. What lies in a skill is a part of it, no
 * skill of its own. A link to a folder is followed where it stands in one of `dirs` itself.
 */
export async function discoverSkills(dirs: readonly string[]): Promise<Discovery> {
  const search = new Search()
  for (const dir of dirs) await search.look(dir)
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

  async look(dir: string): Promise<void> {
    const open: Place[] = [{ path: dir, depth: 0 }]
    for (let place = open.shift(); place !== undefined; place = open.shift()) {
      if (this.#seen.size >= MAX_FOLDERS) {
        this.warnings.push(`${dir}: more than ${MAX_FOLDERS} folders; the rest was not looked at.`)
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
      const below = entries.filter((entry) => isWorthALook(entry, depth)).map(({ name }) => name)
      return below.sort().map((name) => ({ path: join(folder, name), depth: depth + 1 }))
    } catch (error) {
      if (!isSystemError(error)) throw error
      // A link to a file, or one that leads nowhere, is no folder.
      if (depth === 0) this.warnings.push(`${path}: the folder cannot be read (${error.code ?? 'unknown error'}).`)
      return []
    }
  }
}

function isWorthALook(entry: Dirent, depth: number): boolean {
  if (PASSED_OVER.has(entry.name)) return false
  return entry.isDirectory() || (depth === 0 && entry.isSymbolicLink())
}
