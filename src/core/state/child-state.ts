import type { ResumeState } from '#contracts/result.js'

/** The state of a child run as of an event in its own log. */
export interface ChildReference {
  readonly runId: string
  readonly seq: number
  /** Of that state: SHA-256, hex. */
  readonly digest: string
}

/** The state of a child run, as its parent stores it: a reference if the log holds the run, else a document. */
export type StoredChild = ResumeState | ChildReference

export function isChildReference(child: StoredChild): child is ChildReference {
  return !('kind' in child)
}
