import type { Model, ModelSession, RequestConstants } from '../../contracts/model.js'
import type { Spending } from '../../money/spending.js'
import type { OutputFormat } from '../../output/format.js'
import type { ToolSpec } from '../../tools/spec.js'
import type { StartChild } from './child-run.js'
import type { ConfigDigest } from '../machine/config-digest.js'
import type { JsonValue } from '../../util/json.js'
import type { InputPort } from '../stream/input.js'
import type { NamedPolicy } from '../extension/policy.js'
import type { CallMark } from './call-mark.js'

/** What the model can be offered, as it was found. */
export interface Offer {
  readonly tools: readonly ToolSpec[]
  /** Those of each server, which are among the tools. */
  readonly servers: readonly (readonly ToolSpec[])[]
  /** For the system prompt: what skills there are. */
  readonly skills: string
}

/** What a run is frozen with once its hooks and servers have started: nothing that is added later reaches it. */
export interface Frozen {
  readonly model: Model
  readonly session: ModelSession
  readonly constants: RequestConstants
  /** The tools that can be called, by name. */
  readonly tools: ReadonlyMap<string, ToolSpec>
  readonly output: OutputFormat | null
  /** Null if nobody asks for the costs. */
  readonly spending: Spending | null
  readonly input: InputPort | null
  /** Somebody listens for deltas. */
  readonly deltas: boolean
  /** Every batch runs one call at a time. */
  readonly sequential: boolean
  readonly root: string
  /** Decide about calls; the strictest decision counts. */
  readonly policies: readonly NamedPolicy[]
  /** Say more about calls that have ended, for their events. */
  readonly marks: readonly CallMark[]
  /** What the run is configured with, to be compared when it goes on elsewhere. */
  readonly config: ConfigDigest
  readonly startChild: StartChild
  /**
   * Asks the servers whether they offer something else by now; then `tools`, `constants` and `config` are others from here
   * on. Null for a run without servers.
   */
  readonly refresh: ((signal: AbortSignal) => Promise<void>) | null
  /** An answer that was kept as JSON, as the caller's schema parses it. */
  readonly readAnswer: (json: JsonValue) => Promise<unknown>
}
