import type { ModelRun } from '#contracts/attempt.js'
import type { Decide, Model, ModelSession, ModelSettings, RequestConstants, ToolDefinition } from '../model-session.js'
import type { ModelRef } from '#contracts/model-reference.js'
import type { MoneyPort, RunMoney } from '../money-port.js'
import type { AnswerPort, OutputFormat } from '../state/output-format.js'
import type { SandboxMode, ToolSpec } from '../tools/tool-spec.js'
import { HarnessError } from '#contracts/errors.js'
import { isObject, readOnly } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import type { Answer } from '../state/answers.js'
import { configDigest } from '../state/config-digest.js'
import type { ConfigDigest, ConfigPolicy } from '../state/config-digest.js'
import type { DurableEvent, DurablePayloads } from '../state/events.js'
import type { Conversation } from '../state/history.js'
import type { RunRules } from '../state/run-rules.js'
import type { RunState } from '../state/state.js'
import type { InputMessage, InputPort } from '../stream/input.js'
import type { ChildrenPort, ChildStart, Forgotten, StartedChild } from './child-run.js'
import type { Effects } from './effects.js'
import type { Recording } from './recording.js'
import type { RunContext } from './run-context.js'

/** The plan of a run, as data. Parts that are expensive to load are loaded when the run needs them. */
export interface RunPlan {
  readonly opening: Opening
  readonly host: RunHost
  readonly model: ModelRef | Model
  readonly offers: ToolOffers
  readonly answer: AnswerPort
  /** The first parts of the system prompt: the harness's own, then the workspace. Those of skills and tools follow. */
  readonly instructions: readonly string[]
  readonly root: string
  readonly sandbox: SandboxMode
  readonly settings: ModelSettings
  readonly money: MoneyPort
  readonly rules: PlannedRules
  readonly input: InputPort | null
  /** Deltas are emitted. */
  readonly deltas: boolean
  /** Every batch runs one call at a time. */
  readonly sequential: boolean
  /** Of the run that this one is a fork of, taken as they are; null for any other run. */
  readonly inherited: { readonly constants: RequestConstants; readonly output: OutputFormat | null } | null
  /** The rules of a recorded run that is run again; null: made of `rules`. */
  readonly recordedRules: RunRules | null
}

/** The rules of a run as far as its options decide them. The others follow from its tools and its answer. */
export type PlannedRules = Omit<RunRules, 'toolRetryBudgets' | 'answersByTool' | 'answersByJson' | 'computed'>

/** The harness, as its runs use it. */
export interface RunHost {
  loadModel(model: ModelRef | Model): Promise<Model>
  /** Starts a run under a call of `parent`. */
  startChild(parent: RunContext, setup: RunSetup, child: ChildStart): StartedChild
  /** Ends a run under a call of `parent`, and the runs below it, in their logs, unless they have ended. */
  endChild(parent: RunContext, runId: string): Promise<void>
  /** Ends the child runs whose call has ended without starting them again, and the runs below them. */
  endForgotten(parent: RunContext, forgotten: Forgotten): Promise<void>
  readonly children: ChildrenPort<RunContext, RunSetup>
  /** Asks models on behalf of a run, beside its conversation. */
  decider(context: RunContext, prepared: Pick<PreparedRun, 'model' | 'money'>): Decide
  /** The effects of a recorded run. */
  recordedEffects(context: RunContext, setup: RunSetup, recording: Recording): Effects
}

/** Everything that can be offered to the model. */
export interface Offer {
  readonly tools: readonly ToolSpec[]
  /** Those of each server, which are among the tools. */
  readonly servers: readonly (readonly ToolSpec[])[]
  /** For the system prompt: what skills there are. */
  readonly skills: string
}

/** The offers of one run. */
export interface ToolOffers {
  /** The tools that come neither with the package nor from a server. */
  readonly own: readonly ToolSpec[]
  /** False if every offer is the first one. */
  readonly canChange: boolean
  /** The first offer of a run with these rules. */
  load(signal: AbortSignal, rules: RunRules): Promise<Offer>
  /** The current offer, requested at turn boundaries: `before` itself if nothing has changed. */
  refresh(signal: AbortSignal, before: Offer): Promise<Offer>
  /** The tools of an offer, as this model is given them. */
  definitions(tools: Offer['tools'], model: Model): readonly ToolDefinition[]
}

/** The parts of a run that are known before its first event. */
export interface PreparedRun {
  readonly model: Model
  readonly output: OutputFormat | null
  readonly rules: RunRules
  readonly money: RunMoney
}

/** The parts of a run that are fixed once its hooks and servers have started. Only the tools of servers can change later. */
export class RunSetup {
  readonly plan: RunPlan
  readonly model: Model
  readonly session: ModelSession
  readonly output: OutputFormat | null
  readonly money: RunMoney
  readonly root: string
  readonly #rules: RunRules
  #offer: Offer
  /** The tools that can be called, by name: the same map with others after `refresh`, since the contexts of calls have it. */
  readonly tools: Map<string, ToolSpec>
  /** Like `config`, other ones after `refresh`. */
  constants: RequestConstants
  /** The configuration of the run, compared when the run continues elsewhere. */
  config: ConfigDigest

  constructor(plan: RunPlan, { model, output, rules, money }: PreparedRun, session: ModelSession, offer: Offer) {
    this.plan = plan
    this.model = model
    this.session = session
    this.output = output
    this.money = money
    this.root = plan.root
    this.#rules = rules
    this.#offer = offer
    this.tools = new Map(offer.tools.map((spec) => [spec.name, spec]))
    this.constants = this.#constantsOf(offer)
    this.config = this.#digest()
  }

  /** Opens the session of the model, and loads the tools. */
  static async open(
    context: RunContext,
    plan: RunPlan,
    prepared: PreparedRun,
    metadata: JsonObject,
  ): Promise<RunSetup> {
    const { signal, extensions, runId, agentName, labels } = context
    const isFork = plan.opening.kind === 'go_on' && plan.opening.begun === 'forked' && { isFork: true as const }
    const run = { runId, agentName, metadata: readOnly(metadata), labels, purpose: 'main', ...isFork }
    const session = openSession(prepared.model, run)
    const [own = '', ...others] = plan.instructions
    const planned = { ...plan, instructions: [extensions.instructions ?? own, ...others] }
    return new RunSetup(planned, prepared, session, await plan.offers.load(signal, prepared.rules))
  }

  /** Asks the servers for changes of their tools. */
  async refresh(signal: AbortSignal): Promise<void> {
    const offer = await this.plan.offers.refresh(signal, this.#offer)
    if (offer === this.#offer) return
    this.#offer = offer
    this.tools.clear()
    for (const spec of offer.tools) this.tools.set(spec.name, spec)
    this.constants = this.#constantsOf(offer)
    this.config = this.#digest()
  }

  /** Without the path of the workspace: a recorded run is replayed in any folder. */
  #digest(): ConfigDigest {
    const instructions = this.constants.instructions.replaceAll(this.root, '')
    return configDigest({ ...this.constants, instructions }, this.#offer.tools, this.#rules.limits)
  }

  #constantsOf({ tools, skills }: Offer): RequestConstants {
    const { plan, output } = this
    if (plan.inherited !== null) return plan.inherited.constants
    const definitions = plan.offers.definitions(tools, this.model)
    const ofTools = tools.map(({ instructions }) => instructions?.trim() ?? '')
    const instructions = [...plan.instructions, skills, ...ofTools, output?.instructions ?? '']
    return {
      instructions: instructions.filter((part) => part !== '').join('\n\n'),
      tools: output?.tool ? [...definitions, output.tool] : definitions,
      structuredOutput: output?.request ?? null,
      settings: plan.settings,
    }
  }
}

/** A session of the model. Throws `provider_error` if a custom model gives something else. */
export function openSession(model: Model, run: ModelRun): ModelSession {
  const session: unknown = model.openSession(run)
  if (isObject(session) && typeof session['turn'] === 'function') return session as unknown as ModelSession
  const problem = 'expected `openSession()` to return an object with `turn()`, and no promise'
  throw new HarnessError('provider_error', `Model \`${model.provider}:${model.id}\` returned no session: ${problem}.`)
}

/** A loaded run: its state, its raw replies, and the last event if it came from a log. */
export interface LoadedRun {
  readonly state: RunState
  readonly responses: readonly unknown[]
  readonly last: DurableEvent | null
  /** The log that the run continues in contains it from its beginning. */
  readonly isLogged: boolean
  /** Call ids of the answers that it has had since it was stored: they are not given to it again. */
  readonly answered?: readonly string[]
  /** A child run that was cancelled together with its call: it continues from its last position. */
  readonly isReopened?: boolean
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
