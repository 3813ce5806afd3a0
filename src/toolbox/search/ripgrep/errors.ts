import { basename, dirname, join } from 'node:path'
import { fileFailureOf } from '../../workspace/failure.js'
import { openFolder, statIn } from '../../workspace/safe-open.js'
import type { Workspace } from '../../workspace/workspace.js'

/** `rg: path: what was wrong with it (os error 13)`. */
const OF_A_FILE = /^rg: (.+): [^:]+ \(os error \d+\)$/

/** Why ripgrep took a query for no pattern; `undefined` if it complains of something else. */
export function patternProblem(errors: string): string | undefined {
  if (errors.startsWith('rg: the literal ')) return 'each line is searched by itself: no match can hold a line break'
  if (errors.startsWith('rg: compiled regex exceeds size limit'))
    return 'the pattern is too big: use smaller repetitions'
  if (!errors.startsWith('rg: regex parse error:')) return undefined
  return /\nerror: (.+)/.exec(errors)?.[1] ?? 'it is no regular expression'
}

/**
 * What ripgrep complains of. Of files, only those count that are where it says: others are gone, which is no problem, or
 * were never inside the root (see `confirmedFile`), and their names are nobody's business.
 */
export async function confirmedErrors(workspace: Workspace, errors: string): Promise<string> {
  const lines = errors.trim().split('\n')
  if (!lines.some((line) => /^rg: .+: ./.test(line))) return errors.trim()
  const kept: string[] = []
  for (const line of lines) {
    const path = OF_A_FILE.exec(line)?.[1]
    if (path !== undefined && (await isThere(workspace, join(workspace.root, path)))) kept.push(line)
  }
  return kept.join('\n')
}

async function isThere(workspace: Workspace, path: string): Promise<boolean> {
  if (!workspace.readPolicy.covers(path)) return false
  try {
    const folder = await openFolder(workspace, dirname(path))
    try {
      return (await statIn(folder, basename(path))) !== undefined
    } finally {
      await folder.close()
    }
  } catch (error) {
    if (fileFailureOf(error) === undefined) throw error
    return false
  }
}
