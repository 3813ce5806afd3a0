import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { delimiter, join } from 'node:path'

let found: Promise<string | undefined> | undefined

/** The ripgrep of this machine: the npm package's, else the one on PATH; `undefined` when there is none. Looked for once. */
export async function findRipgrep(): Promise<string | undefined> {
  found ??= packaged().then((path) => path ?? onPath(process.env['PATH'] ?? ''))
  return found
}

/** The import throws where the package is missing, or has no program for this platform. */
async function packaged(): Promise<string | undefined> {
  try {
    const { rgPath } = await import('@vscode/ripgrep')
    return (await isProgram(rgPath)) ? rgPath : undefined
  } catch {
    return undefined
  }
}

/** The first `rg` in the folders of a PATH. */
export async function onPath(path: string): Promise<string | undefined> {
  const name = process.platform === 'win32' ? 'rg.exe' : 'rg'
  for (const folder of path.split(delimiter)) {
    if (folder === '') continue
    const program = join(folder, name)
    if (await isProgram(program)) return program
  }
  return undefined
}

async function isProgram(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  )
}
