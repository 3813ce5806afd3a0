import type { Model, ModelSession, RequestConstants } from '../../contracts/model.js'
import type { Price } from '../../money/price.js'
import type { Spending } from '../../money/spending.js'
import type { OutputFormat } from '../../output/format.js'
import type { SandboxMode, ToolSpec } from '../../tools/spec.js'
import type { EndChild, StartChild } from './child-run.js'
import type { ConfigDigest } from '../machine/config-digest.js'
import type { JsonValue } from '../../util/json.js'
import type { InputPort } from '../stream/input.js'
import type { NamedPolicy } from '../extension/policy.js'
import type { CallMark } from './call-mark.js'

/** Everything that can be offered to the model. */
export interface Offer {
  readonly tools: readonly ToolSpec[]
  /** Those of each server, which are among the tools. */
  readonly servers: readonly (readonly ToolSpec[])[]
  /** For the system prompt: what skills there are. */
  readonly skills: string
}

/** The parts of a run that are fixed once its hooks and servers have started. */
export interface Frozen {
  readonly model: Model
  readonly session: ModelSession
  readonly constants: RequestConstants
  /** The tools that can be called, by name. */
  readonly tools: ReadonlyMap<string, ToolSpec>
  readonly output: OutputFormat | null
  /** Pays for the requests; null without a limit of money. */
  readonly spending: Spending | null
  /** The price by which replies are counted if there is no limit; null if they are not. */
  readonly price: Promise<Price | null> | null
  readonly input: InputPort | null
  /** Deltas are emitted. */
  readonly deltas: boolean
  /** Every batch runs one call at a time. */
  readonly sequential: boolean
  readonly root: string
  readonly sandbox: SandboxMode
  /** Decide about calls; the strictest decision counts. */
  readonly policies: readonly NamedPolicy[]
  /** Say more about calls that have ended, for their events. */
  readonly marks: readonly CallMark[]
  /** The configuration of the run, compared when the run continues elsewhere. */
  readonly config: ConfigDigest
  readonly startChild: StartChild
  readonly endChild: EndChild
  /**
   * Asks the servers for changes of their tools; after a change, `tools`, `constants` and `config` are new from there
   * on. Null for a run without servers.
   */
  readonly refresh: ((signal: AbortSignal) => Promise<void>) | null
  /** An answer that was kept as JSON, as the caller's schema parses it. */
  readonly readAnswer: (json: JsonValue) => Promise<unknown>
}
