import { lstat, readdir, unlink } from 'node:fs/promises'
import type { Folder } from './safe-open.js'

const TEMPORARY = /^\.thinharness-[0-9a-f-]{36}\.tmp$/
/** A file that was not written to for longer is left over: its process was killed. */
const LEFT_OVER_MS = 3_600_000
const MOST_FOLDERS = 1_000

/** When folders were swept last, by their paths. */
const swept = new Map<string, number>()

/** A name that no other file has. */
export function temporaryName(): string {
  return `.thinharness-${globalThis.crypto.randomUUID()}.tmp`
}

/** Removes the temporary files that killed processes left in a folder; looks at most once an hour. Never rejects. */
export async function sweepTemporaryFiles(folder: Folder): Promise<void> {
  const now = Date.now()
  if (now - (swept.get(folder.path) ?? 0) < LEFT_OVER_MS) return
  if (swept.size >= MOST_FOLDERS) swept.clear()
  swept.set(folder.path, now)
  const names = await readdir(folder.at('.')).catch(() => [])
  for (const name of names.filter((name) => TEMPORARY.test(name))) {
    const stats = await lstat(folder.at(name)).catch(() => undefined)
    if (stats?.isFile() !== true || now - stats.mtimeMs < LEFT_OVER_MS) continue
    await unlink(folder.at(name)).catch(() => undefined)
  }
}
