import { lstat, mkdir, mkdtemp, readdir, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join, relative, sep } from 'node:path'
import { isSystemError } from '../workspace/failure.js'
import { withFile } from '../workspace/workspace.js'
import { workspaceOfSkill } from './skill.js'

/** A script that was checked, in a private folder: nothing else can replace it before it runs. */
export interface ScriptCopy {
  /** The copy. */
  readonly path: string
  /** The private folder. */
  readonly folder: string
  readonly isExecutable: boolean
  remove(): Promise<void>
}

/** Names that programs look for in the folders above a script. */
const LOOKED_FOR = [
  ...['node_modules', 'package.json', 'tsconfig.json', 'jsconfig.json', 'deno.json', 'bunfig.toml'],
  ...['pyproject.toml', 'uv.lock', '.python-version', '.venv', 'go.mod', 'go.sum', 'go.work', 'vendor'],
]

/**
 * Copies a script with the bytes that were checked. Around the copy, links lead to the other files of the skill, and to the
 * files that programs look for above it, so that relative paths and imports work as before.
 * @param script A path in the skill, as the model gave it.
 * @throws PathValidationError if it is outside the skill; FileFailure if it is not a file; an error of the system if it is missing.
 */
export async function copyOfScript(skillFolder: string, script: string): Promise<ScriptCopy> {
  const workspace = workspaceOfSkill(skillFolder)
  const checked = await withFile(workspace, { policy: workspace.readPolicy, path: script }, async (file) => ({
    path: file.path,
    bytes: await file.handle.readFile(),
    mode: Number(file.stats.mode) & 0o777,
  }))
  const folder = await mkdtemp(join(await realpath(tmpdir()), 'thinharness-script-'))
  const removeFolder = (): Promise<void> => rm(folder, { recursive: true, force: true })
  try {
    const path = join(folder, checked.path)
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await linkAround(folder, checked.path, skillFolder)
    await writeFile(path, checked.bytes, { mode: checked.mode | 0o400, flag: 'wx' })
    return { path, folder, isExecutable: (checked.mode & 0o111) !== 0, remove: removeFolder }
  } catch (error) {
    await removeFolder()
    throw error
  }
}

async function linkAround(copies: string, script: string, skillFolder: string): Promise<void> {
  let below = script
  for (let folder = dirname(script); ; folder = dirname(folder)) {
    const isInSkill = folder === skillFolder || relative(skillFolder, folder).split(sep)[0] !== '..'
    const names = isInSkill ? await readdir(folder) : LOOKED_FOR
    for (const name of names) {
      const target = join(folder, name)
      if (name !== basename(below) && (isInSkill || (await pathExists(target))))
        await symlink(target, join(copies, target))
    }
    if (folder === dirname(folder)) return
    below = folder
  }
}

async function pathExists(path: string): Promise<boolean> {
  try {
    await lstat(path)
    return true
  } catch (error) {
    if (isSystemError(error)) return false
    throw error
  }
}
