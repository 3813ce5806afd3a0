import { findProgram } from '../../process/find-program.js'

const NAME = process.platform === 'win32' ? 'rg.exe' : 'rg'

let installed: Promise<string | undefined> | undefined

/** The ripgrep of this machine: the npm package's, else the one on PATH; `undefined` if there is none. Searched for once. */
export async function findRipgrep(): Promise<string | undefined> {
  installed ??= packaged().then((path) => path ?? findProgram(NAME))
  return installed
}

/** The import throws if the package is missing, or has no program for this platform. */
async function packaged(): Promise<string | undefined> {
  try {
    const { rgPath } = await import('@vscode/ripgrep')
    return await findProgram(rgPath)
  } catch {
    return undefined
  }
}
