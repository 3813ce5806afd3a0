import type { TranscriptEntry } from '../../contracts/entry.js'

/** Where quotations can come from. */
export interface EvidenceSources {
  /** The workspace, an absolute path. */
  readonly root: string
  readonly transcript: readonly TranscriptEntry[]
  readonly signal: AbortSignal
}

/** What stands at the place; a problem where there is no such place. */
export type Quoted = { readonly text: string; readonly place: string } | { readonly problem: string }
