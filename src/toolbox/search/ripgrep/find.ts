import type * as Ripgrep from '@vscode/ripgrep'
import { importInstalled } from '#util/platform/node.js'
import { findProgram } from '../../process/find-program.js'

let installed: Promise<string | undefined> | undefined

/** The ripgrep of this machine: the npm package's, else the one on PATH; `undefined` if there is none. Searched for once. */
export async function findRipgrep(): Promise<string | undefined> {
  installed ??= packaged().then((path) => path ?? findProgram(process.platform === 'win32' ? 'rg.exe' : 'rg'))
  return installed
}

/** The import throws if the package is missing, or has no program for this platform. */
async function packaged(): Promise<string | undefined> {
  try {
    const { rgPath } = (await importInstalled('@vscode/ripgrep')) as typeof Ripgrep
    return await findProgram(rgPath)
  } catch {
    return undefined
  }
}
