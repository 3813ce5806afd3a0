import { mkdirSync, mkdtempSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'tsup'

const source = (path: string): string => fileURLToPath(new URL(`../../src/${path}`, import.meta.url))

/**
 * Builds the stores, for programs that a test starts, and gives the folder: `index.js` has `fileLog`. It is inside the
 * project, where the packages of databases are found; who asked for it removes it.
 */
export async function bundleStores(): Promise<string> {
  const place = fileURLToPath(new URL('../../.build/', import.meta.url))
  mkdirSync(place, { recursive: true })
  const outDir = mkdtempSync(`${place}stores-`)
  const entry = {
    index: source('store/file-log.ts'),
    owner: source('util/platform/owner.ts'),
    'store/sqlite': source('store/sqlite.ts'),
    'store/postgres': source('store/postgres.ts'),
  }
  await build({ entry, outDir, format: 'esm', target: 'node20', splitting: true, silent: true, config: false })
  return outDir
}
