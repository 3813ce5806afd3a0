import { hides } from './view.js'
import type { ViewChange } from './view.js'
import type { TranscriptEntry } from '#contracts/entry.js'

/** A notice of the host as the model last read it. */
export interface HostNotice {
  readonly entryId: string
  readonly digest: string
}

interface Noticing {
  readonly transcript: readonly TranscriptEntry[]
  hostNotices?: Record<string, HostNotice>
}

/** The last entry of a request carries these notices. */
export function rememberNotices(
  state: Noticing,
  notices: readonly { readonly name: string; readonly digest: string }[],
): void {
  const entryId = state.transcript.at(-1)?.id
  if (entryId === undefined) return
  for (const { name, digest } of notices) state.hostNotices = { ...state.hostNotices, [name]: { entryId, digest } }
}

/** A notice that the model cannot see any more is given again. */
export function forgetHidden(state: Noticing, changes: readonly ViewChange[]): void {
  if (state.hostNotices === undefined) return
  const seen = Object.entries(state.hostNotices).filter(([, { entryId }]) => !hides(state.transcript, changes, entryId))
  state.hostNotices = Object.fromEntries(seen)
}
