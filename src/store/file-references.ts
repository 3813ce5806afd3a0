import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { LogRef } from '#core/log/ref.js'
import { keyOf } from '#core/log/ref.js'
import type { Reference } from './pruning.js'
import { isObject, parseJson } from '#util/json.js'
import { makeFolder, namesIn } from './folder.js'
import { folderOf, pathsOf } from './file-paths.js'

const ENDING = '.references'

/** Stores that one log refers to another: as a line of a file next to the other, which is removed with it. */
export function addReference(folder: string, reference: Reference): void {
  const path = pathsOf(folder, reference.to).references
  // The break comes first: a process may have ended within the line before.
  const line = `\n${JSON.stringify(reference)}`
  try {
    appendFileSync(path, line, { mode: 0o600 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    makeFolder(dirname(path))
    appendFileSync(path, line, { mode: 0o600 })
  }
}

/** All references between the logs in a folder, without those of logs that are gone. */
export async function referencesIn(folder: string): Promise<Reference[]> {
  const references: Reference[] = []
  for (const kind of ['run', 'thread'] as const satisfies readonly LogRef['kind'][]) {
    const parent = folderOf(folder, kind)
    for (const name of await namesIn(parent))
      if (name.endsWith(ENDING)) references.push(...readReferences(folder, join(parent, name)))
  }
  return references
}

/** The references to one log, without those of logs that are gone. */
export function referencesTo(folder: string, ref: LogRef): Reference[] {
  const path = pathsOf(folder, ref).references
  return existsSync(path) ? readReferences(folder, path) : []
}

function readReferences(folder: string, path: string): Reference[] {
  const bySource = new Map<string, Reference>()
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    const parsed = line === '' ? null : parseJson(line)
    if (parsed?.ok !== true || !isObject(parsed.value)) continue
    const reference = parsed.value as unknown as Reference
    if (existsSync(pathsOf(folder, reference.from).log)) bySource.set(keyOf(reference.from), reference)
  }
  return [...bySource.values()]
}
