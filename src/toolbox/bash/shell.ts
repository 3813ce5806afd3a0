import type { Environment } from '../process/environment.js'
import { findProgram } from '../process/find-program.js'

export interface Shell {
  readonly path: string
  /** As the result names it. */
  readonly shown: string
}

/** The first of the usual shells that is there; the last one when none is, so that starting it says what is missing. */
export async function findShell(candidates: readonly string[] = ['/bin/bash', '/bin/sh']): Promise<Shell> {
  for (const path of candidates) if ((await findProgram(path)) !== undefined) return shellAt(path)
  return shellAt(candidates.at(-1) ?? '/bin/sh')
}

/** Where no login script of a user is. */
const NO_HOME = '/nonexistent'

/** The environment in which a shell starts: the home folder, whose login scripts may hold secrets, is hidden from it. */
export function startingEnvironment(environment: Environment): Environment {
  return { ...environment, HOME: NO_HOME }
}

/** What stands before a command: it puts right the home folder, and the search path that the system's login script has changed. */
export function commandPrefix({ HOME, PATH }: Environment): string {
  const home = HOME === undefined ? 'unset HOME; ' : `export HOME=${quoted(HOME)}; `
  return PATH === undefined ? home : `${home}export PATH=${quoted(PATH)}; `
}

function shellAt(path: string): Shell {
  return { path, shown: `${path} -lc` }
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
