// How a contender imports a peer.
import { homedir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** Where the peers are installed. */
export const CACHE = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'thinharness-bench')

/** Imports a module from a peer's folder. */
export type Load = (specifier: string) => Promise<unknown>

/** The import of the peer in this folder: its own packages, and never those of the repository. */
export async function loaderOf(folder: string): Promise<Load> {
  const { load } = (await import(pathToFileURL(join(CACHE, folder, 'load.js')).href)) as { readonly load: Load }
  return load
}
