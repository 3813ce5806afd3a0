import { access } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { IGNORE_FILES } from '../../workspace/ignore-rules.js'
import { isInside } from '../../workspace/paths.js'
import { OWN_FOLDER } from '../../workspace/workspace.js'
import type { SearchRequest } from '../engine.js'
import { MAX_MATCHES_COUNTED } from '../match-file.js'
import { escapeLiteral } from '../pattern/pattern.js'

/** The arguments with which ripgrep, run in the root, counts the matching lines in the files of the walker. */
export function ripgrepArguments(request: SearchRequest, useParents: boolean): string[] {
  const { query, fileType, exclusions, workspace, starts } = request
  return [
    '--count',
    '--null',
    '--with-filename',
    '--no-config',
    '--no-mmap',
    '--crlf',
    '--no-require-git',
    '--no-ignore-global',
    '--no-ignore-exclude',
    ...(useParents ? [] : ['--no-ignore-parent']),
    `--max-count=${MAX_MATCHES_COUNTED}`,
    query.caseSensitive ? '--case-sensitive' : '--ignore-case',
    ...(fileType === undefined ? [] : [`--type=${fileType.name}`]),
    `--glob=!/${OWN_FOLDER}`,
    ...workspace.readPolicy.exclusions.map((glob) => `--iglob=!${glob}`),
    ...exclusions.globs.map((glob) => `--glob=!${glob}`),
    '--',
    query.literal ? escapeLiteral(query.text) : query.text,
    ...starts.map((start) => relative(workspace.root, start) || '.'),
  ]
}

/**
 * The ignore files above the starts that ripgrep must read. Those inside the root apply; those above it must not. ripgrep
 * reads all or none: `impossible` if there are both.
 */
export async function parentsToUse({ workspace, starts }: SearchRequest): Promise<'none' | 'all' | 'impossible'> {
  const { root } = workspace
  const inside = new Set(
    starts.flatMap((start) => foldersAbove(start).filter((folder) => folder === root || isInside(root, folder))),
  )
  if (!(await anyHasRules(inside))) return 'none'
  return (await anyHasRules(foldersAbove(root))) ? 'impossible' : 'all'
}

function foldersAbove(path: string): string[] {
  const folder = dirname(path)
  return folder === path ? [] : [folder, ...foldersAbove(folder)]
}

async function anyHasRules(folders: Iterable<string>): Promise<boolean> {
  const files = [...folders].flatMap((folder) => IGNORE_FILES.map((name) => join(folder, name)))
  const present = await Promise.all(files.map(isAccessible))
  return present.includes(true)
}

async function isAccessible(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
