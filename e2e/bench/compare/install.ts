// The packages of the peers, in a cache outside the repository: nothing of them is a dependency of the package.
import { execFile } from 'node:child_process'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { CACHE } from './load.js'
import type { Peer } from './peers.js'

const DONE = 'installed.json'

/** Installs the packages unless they are there. Install scripts are not executed. Rejects with the last words of npm. */
export async function install({ folder, packages }: Pick<Peer, 'folder' | 'packages'>): Promise<void> {
  const path = join(CACHE, folder)
  const manifest = JSON.stringify({ private: true, type: 'module', dependencies: packages })
  if ((await readFile(join(path, DONE), 'utf8').catch(() => '')) === manifest) return
  await rm(path, { recursive: true, force: true })
  await mkdir(path, { recursive: true })
  await writeFile(join(path, 'package.json'), manifest)
  await writeFile(join(path, 'load.js'), 'export const load = (specifier) => import(specifier)\n')
  try {
    await promisify(execFile)('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts'], { cwd: path })
  } catch (error) {
    const output = error instanceof Error && 'stderr' in error ? String(error.stderr) : String(error)
    const line = output.split('\n').find((each) => /^npm error (\d|[A-Z])/.test(each) && !each.includes('code'))
    throw new Error((line ?? output.slice(-300)).replace(/^npm error /, ''), { cause: error })
  }
  await writeFile(join(path, DONE), manifest)
}
