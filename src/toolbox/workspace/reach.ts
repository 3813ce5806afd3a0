import { resolve } from 'node:path'
import type { ToolReach } from '../../tools/spec.js'
import type { FileToolOptions } from './options.js'

/** Folders of a tool on files, as far as it reads and writes. */
export function fileReach(
  options: FileToolOptions,
  does: { readonly reads: boolean; readonly writes: boolean },
): ToolReach {
  const { root, readPaths, writePaths } = options
  const within = (paths: readonly string[] = ['.']): readonly string[] =>
    root === undefined ? paths : paths.map((path) => resolve(root, path))
  return { ...(does.reads && { reads: within(readPaths) }), ...(does.writes && { writes: within(writePaths) }) }
}

/** Of a program that nothing confines but the rights of this process's user. */
export const ANYTHING: ToolReach = { reads: ['/'], writes: ['/'], hosts: ['*'], programs: ['*'] }
