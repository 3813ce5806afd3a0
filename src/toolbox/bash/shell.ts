import type { Environment } from '../process/environment.js'
import { findProgram } from '../process/find-program.js'
import { quoted } from '../process/quoted.js'

export interface Shell {
  readonly path: string
  /** In results. */
  readonly shown: string
}

/** The first shell that exists; the last one if none does, so that the error names it. */
export async function findShell(candidates: readonly string[] = ['/bin/bash', '/bin/sh']): Promise<Shell> {
  for (const path of candidates) if ((await findProgram(path)) !== undefined) return shellAt(path)
  return shellAt(candidates.at(-1) ?? '/bin/sh')
}

/** A folder without login scripts of a user. */
const NO_HOME = '/nonexistent'

/** The environment in which a shell starts, without the home folder, whose login scripts may contain secrets. */
export function startingEnvironment(environment: Environment): Environment {
  return { ...environment, HOME: NO_HOME }
}

/** Code before a command that restores the home folder, and the search path that the system's login script changes. */
export function commandPrefix({ HOME, PATH }: Environment): string {
  const home = HOME === undefined ? 'unset HOME; ' : `export HOME=${quoted(HOME)}; `
  return PATH === undefined ? home : `${home}export PATH=${quoted(PATH)}; `
}

function shellAt(path: string): Shell {
  return { path, shown: `${path} -lc` }
}
