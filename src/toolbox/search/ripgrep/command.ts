import { access } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { IGNORE_FILES } from '../../workspace/ignore-rules.js'
import { isInside } from '../../workspace/paths.js'
import { OWN_FOLDER } from '../../workspace/workspace.js'
import type { SearchRequest } from '../engine.js'
import { MAX_MATCHES_COUNTED } from '../hits.js'
import { escapeLiteral } from '../pattern/pattern.js'

/**
 * The arguments with which ripgrep, run in the root, searches the files of the walker.
 *
 * A match takes the rest of its line with it: a line with a million matches would otherwise be a record of a million
 * entries.
 */
export function ripgrepArguments(request: SearchRequest, useParents: boolean): string[] {
  const { query, fileType, exclusions, workspace, starts } = request
  return [
    '--json',
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
    ...exclusions.globs.map((glob) => `--glob=!${glob}`),
    '--',
    `(?:${query.literal ? escapeLiteral(query.text) : query.text})(?-u:.)*`,
    ...starts.map((start) => relative(workspace.root, start) || '.'),
  ]
}

/**
 * Whether ripgrep is to read the ignore files above its starts. The rules of those inside the root hold; the rules of those
 * above it must not. ripgrep knows only all or none: `impossible` where there are both.
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
  const present = await Promise.all(files.map(exists))
  return present.includes(true)
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
