import type { Model, ModelSettings, RequestConstants } from '../../contracts/model.js'
import type { Prices } from '../../money/prices.js'
import type { OutputFormat } from '../../output/format.js'
import type { JsonObject, JsonValue } from '../../util/json.js'
import type { Answer } from '../machine/answers.js'
import type { ChildStart, EndChild, EndForgotten } from './child-run.js'
import type { ConfigPolicy } from '../machine/config-digest.js'
import type { RunContext } from './context.js'
import type { Frozen, Offer } from './frozen.js'
import type { InputMessage, InputPort } from '../stream/input.js'
import type { LoadedRun } from './load.js'
import type { NamedPolicy } from '../extension/policy.js'
import type { CallMark } from './call-mark.js'
import type { RunRules } from '../machine/rules.js'
import type { DurablePayloads } from '../machine/events.js'
import type { Conversation } from '../machine/history.js'
import type { SandboxMode } from '../../tools/spec.js'
import type { StartedChild } from './started-child.js'

/** The plan of a run. Parts that are expensive to load are loaded when the run needs them. */
export interface RunPlan {
  readonly opening: Opening
  readonly root: string
  /** How long the run may take, in ms; null: any time. */
  readonly timeMs: number | null
  readonly sandbox: SandboxMode
  readonly policies: readonly NamedPolicy[]
  readonly marksFor: (rules: RunRules) => readonly CallMark[]
  readonly settings: ModelSettings
  /** Prices of models; null if costs are not counted, unless a limit needs them. */
  readonly prices: Prices | null
  readonly input: InputPort | null
  readonly deltas: boolean
  readonly sequential: boolean
  readonly loadModel: () => Promise<Model>
  readonly loadOffer: (signal: AbortSignal) => Promise<Offer>
  /** The current offer, requested at turn boundaries: `before` itself if nothing has changed. Null if nothing can change. */
  readonly refreshOffer: ((signal: AbortSignal, before: Offer) => Promise<Offer>) | null
  readonly instructionsFor: (offer: Offer) => string
  readonly outputFor: (model: Model) => OutputFormat | null
  readonly rulesFor: (output: OutputFormat | null) => RunRules
  readonly readAnswer: (json: JsonValue) => Promise<unknown>
  /** Those of the run that this one is a fork of, taken as they are. Default: made of what else is here. */
  readonly constants?: RequestConstants
  readonly startChild: (
    parent: RunContext,
    frozen: Frozen,
    child: { readonly callId: string; readonly start: ChildStart },
  ) => StartedChild
  readonly endChild: EndChild
  readonly endForgotten: EndForgotten
}

/** How a run begins: with a prompt, or where an earlier process left it. */
export type Opening = FreshOpening | GoOnOpening

export interface FreshOpening {
  readonly kind: 'fresh'
  readonly prompt: InputMessage
  /** Finds the conversation that it continues. */
  readonly history: () => Promise<OpenHistory>
}

/** The conversation before a run, and what `run_started` says of it. */
export interface OpenHistory {
  readonly start: Pick<DurablePayloads['run_started'], 'history' | 'view'>
  readonly conversation: Conversation
}

export interface GoOnOpening {
  readonly kind: 'go_on'
  /** Finds the run; null when there is none. */
  readonly load: () => Promise<LoadedRun | null>
  readonly answers: readonly Answer[]
  readonly configPolicy: ConfigPolicy
  /** In place of the run's own; null to keep them. */
  readonly metadata: JsonObject | null
  /** The reason why it continues. */
  readonly begun: 'resumed' | 'recovered' | 'retried' | 'forked'
  /** How it begins when there is none. */
  readonly otherwise: (() => Promise<FreshOpening>) | null
}
