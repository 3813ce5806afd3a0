import { existsSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { LogRef } from '../run/log/ref.js'
import { keyOf } from '../run/log/ref.js'
import type { Reference } from '../run/log/pruning.js'
import { isObject, parseJson } from '../util/json.js'
import { makeFolder, namesIn } from './folder.js'
import { fileNameOf, folderOf, pathsOf } from './file-paths.js'

/** Stores that one log refers to another: as a file in a folder of the other. */
export function addReference(folder: string, reference: Reference): void {
  const { referrers } = pathsOf(folder, reference.to)
  makeFolder(referrers)
  writeFileSync(join(referrers, fileNameOf(keyOf(reference.from))), JSON.stringify(reference), { mode: 0o600 })
}

/** All references between the logs in a folder. Removes those of logs that are gone. */
export async function referencesIn(folder: string): Promise<Reference[]> {
  const found: Reference[] = []
  for (const kind of ['run', 'thread'] as const satisfies readonly LogRef['kind'][]) {
    const parent = folderOf(folder, kind)
    for (const name of await namesIn(parent)) {
      if (name.endsWith('.referrers')) found.push(...(await referencesTo(folder, join(parent, name))))
    }
  }
  return found
}

/** The references in one folder of referrers. Removes those of logs that are gone. */
export async function referencesTo(folder: string, referrers: string): Promise<Reference[]> {
  const found: Reference[] = []
  for (const name of await namesIn(referrers)) {
    const path = join(referrers, name)
    const parsed = parseJson(readFileSync(path, 'utf8'))
    const reference = parsed.ok && isObject(parsed.value) ? (parsed.value as unknown as Reference) : null
    if (reference !== null && existsSync(pathsOf(folder, reference.from).log)) found.push(reference)
    else unlinkSync(path)
  }
  return found
}
