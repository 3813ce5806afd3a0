import { HarnessError, messageOf } from '#contracts/errors.js'
import type { TranscriptEntry } from '#contracts/entry.js'
import type { RunUsage } from '#contracts/run-usage.js'
import type { Decide } from '../model-session.js'
import type { JsonObject } from '#util/json.js'

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
  readonly decide: Decide
}

/** The names of extensions that are options of the harness begin with this. */
export const OF_HARNESS = 'options of the harness '

/** A member of an extension, and the name of that extension. */
export interface Named<Member> {
  readonly extension: string
  readonly member: Member
}

/** Something that the host says to the model with a request. */
export interface Notice {
  /** Its subject: letters, digits, `_` and `-`. A notice is repeated only if its text changes. */
  readonly name: string
  readonly text: string
}

/** The notices that hold now. Asked before each request; a failure is counted, and the request goes without them. */
export type NoticeSource<in Deps = unknown> = (
  state: ExtensionContext<Deps>,
) => readonly Notice[] | Promise<readonly Notice[]>

/** The error of a run of which a hook, or a member of an extension, has failed. */
export function failedMember(member: string, cause: unknown): HarnessError {
  return new HarnessError('hook_failed', `${member} failed: ${messageOf(cause)}`, { cause })
}
