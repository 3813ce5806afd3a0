import { readlink, realpath } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'

const MOST_PATHS = 200
const MOST_LINKS = 40

/** The paths behind the links of these absolute paths; of one that does not exist, as far as it does. */
export async function linksIn(paths: Iterable<string>): Promise<ReadonlyMap<string, string>> {
  const links = new Map<string, string>()
  const wanted = [...new Set(paths)].slice(0, MOST_PATHS)
  await Promise.all(wanted.map(async (path) => links.set(path, await behindLinks(path, MOST_LINKS))))
  return links
}

async function behindLinks(path: string, most: number): Promise<string> {
  try {
    return await realpath(path)
  } catch {
    const folder = dirname(path)
    if (folder === path || most === 0) return path
    const parent = await behindLinks(folder, most - 1)
    const here = join(parent, basename(path))
    // A link to something that does not exist yet.
    const target = await readlink(here).catch(() => null)
    return target === null ? here : behindLinks(resolve(parent, target), most - 1)
  }
}
