import { basename, dirname, join } from 'node:path'
import { fileFailureOf } from '../../workspace/failure.js'
import { openFolder, statIn } from '../../workspace/safe-open.js'
import type { Workspace } from '../../workspace/workspace.js'

/** `rg: <path>: <problem> (os error 13)`. */
const OF_A_FILE = /^rg: (.+): [^:]+ \(os error \d+\)$/

/** Why ripgrep rejected a pattern; `undefined` for other errors. */
export function patternProblem(errors: string): string | undefined {
  if (errors.startsWith('rg: the literal ')) return 'lines are searched one by one: no match can contain a line break'
  if (errors.startsWith('rg: compiled regex exceeds size limit'))
    return 'the pattern is too big: use smaller repetitions'
  if (!errors.startsWith('rg: regex parse error:')) return undefined
  return /\nerror: (.+)/.exec(errors)?.[1] ?? 'it is not a regular expression'
}

/**
 * The errors of ripgrep. Errors on files count only if the file exists at its path: others were removed, which is not a
 * problem, or were never inside the root (see `isConfirmed`), and their names must not be shown.
 */
export async function confirmErrors(workspace: Workspace, errors: string): Promise<string> {
  const lines = errors.trim().split('\n')
  if (!lines.some((line) => /^rg: .+: ./.test(line))) return errors.trim()
  const confirmed: string[] = []
  for (const line of lines) {
    const path = OF_A_FILE.exec(line)?.[1]
    if (path !== undefined && (await existsInside(workspace, join(workspace.root, path)))) confirmed.push(line)
  }
  return confirmed.join('\n')
}

async function existsInside(workspace: Workspace, path: string): Promise<boolean> {
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
