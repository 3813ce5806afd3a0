import type { TranscriptEntry } from '../../contracts/entry.js'
import type { RunUsage } from '../../contracts/result.js'
import type { JsonObject } from '../../util/json.js'

/** The run that asks an extension for something, as it stands now. Read-only. */
export interface ExtensionContext<out Deps = unknown> {
  readonly runId: string
  /** Name of the subagent; null for the run at the top. */
  readonly agentName: string | null
  /** The run's metadata. */
  readonly metadata: JsonObject
  /** The host's own objects, as given to the harness or to the call. */
  readonly deps: Deps
  /** All entries of the conversation, in full: a view does not change them. */
  readonly transcript: readonly TranscriptEntry[]
  readonly usage: RunUsage
  /** Aborted when the run is cancelled. */
  readonly signal: AbortSignal
}
