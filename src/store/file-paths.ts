import { join } from 'node:path'
import type { LogRef } from '../run/log/ref.js'
import { fileNameOf } from './file-name.js'

/** The files and folders of one log. Those of runs are in the folder itself, those of threads in `threads`. */
export interface LogPaths {
  /** The events, one JSON document a line. */
  readonly log: string
  /** Folder of the claims. */
  readonly lease: string
  /** Folder of the posts. */
  readonly inbox: string
  /** Folder of the references from other logs. */
  readonly referrers: string
  /** The digest that came with the last events of a thread. */
  readonly digest: string
}

export function pathsOf(folder: string, { kind, id }: LogRef): LogPaths {
  const base = join(folderOf(folder, kind), fileNameOf(id))
  return {
    log: `${base}.jsonl`,
    lease: `${base}.lease`,
    inbox: `${base}.inbox`,
    referrers: `${base}.referrers`,
    digest: `${base}.digest.json`,
  }
}

export function folderOf(folder: string, kind: LogRef['kind']): string {
  return kind === 'run' ? folder : join(folder, 'threads')
}
