import type { TranscriptEntry } from '../../contracts/entry.js'

/** The sources of quotations. */
export interface EvidenceSources {
  /** The workspace, an absolute path. */
  readonly root: string
  readonly transcript: readonly TranscriptEntry[]
  readonly signal: AbortSignal
}
