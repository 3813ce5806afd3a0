import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { delimiter, isAbsolute, join } from 'node:path'

/** The path of a program: itself if it is absolute, else the first of its name on `path`; `undefined` if there is none. */
export async function findProgram(name: string, path = process.env['PATH'] ?? ''): Promise<string | undefined> {
  const candidates = isAbsolute(name) ? [name] : pathFolders(path).map((folder) => join(folder, name))
  for (const candidate of candidates) if (await isProgram(candidate)) return candidate
  return undefined
}

/** Relative folders would depend on the working directory of a command. */
function pathFolders(path: string): string[] {
  return path.split(delimiter).filter((folder) => isAbsolute(folder))
}

async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK)
    return (await stat(path)).isFile()
  } catch {
    return false
  }
}
