import { chmod } from 'node:fs/promises'
import { dirname } from 'node:path'
import { isMainThread } from 'node:worker_threads'
import type { Envelope } from '#core/tools/boundary/envelope.js'
import { parseFieldPath } from '#toolbox/jsonl/field-path.js'
import type { FieldPath } from '#toolbox/jsonl/field-path.js'
import { jsonlSearch } from '#toolbox/jsonl/jsonl-search.js'
import type { FileToolOptions } from '#toolbox/workspace/options.js'
import type { JsonObject } from '#util/json.js'
import { call, folderWith } from '../support.js'

/** Rows as the text of a file; a text is a line as it is. */
export function lines(...rows: readonly unknown[]): string {
  return rows.map((row) => `${typeof row === 'string' ? row : JSON.stringify(row)}\n`).join('')
}

/** Calls `jsonl_search` on files. */
export async function searched(
  files: Readonly<Record<string, string | Uint8Array>>,
  args: JsonObject,
  options: FileToolOptions = {},
): Promise<Envelope> {
  return call(jsonlSearch({ root: await folderWith(files), ...options }), args)
}

/** What stands below the summary. */
export function body({ content }: Envelope): string {
  return content.split('\n\n').slice(1).join('\n\n')
}

/** A line of the summary. */
export function summary({ content }: Envelope, name: string): string | undefined {
  return new RegExp(`^  ${name}: (.*)$`, 'm').exec(content.split('\n\n')[0] ?? '')?.[1]
}

/** Whether `withoutRights` can keep this process from reading what others may not read. */
export const canLoseRights = process.platform !== 'win32' && (process.getuid?.() !== 0 || isMainThread)

const NOBODY = 65_534

/** Runs work that must not read what only the owner may read, which `root` always can. */
export async function withoutRights<T>(root: string, work: () => Promise<T>): Promise<T> {
  if (process.getuid?.() !== 0) return work()
  await chmod(dirname(dirname(root)), 0o755)
  process.seteuid?.(NOBODY)
  try {
    return await work()
  } finally {
    process.seteuid?.(0)
  }
}

/** A field path; throws for text that is none. */
export function pathOf(text: string): FieldPath {
  const parsed = parseFieldPath(text)
  if (!parsed.ok) throw new Error(parsed.problem)
  return parsed.path
}
