import { HarnessError } from '../index.js'
import type {
  ContentPart,
  Extension,
  HarnessDescription,
  HarnessStream,
  InputPort,
  LogStore,
  Model,
  ModelCapabilities,
  ModelRef,
} from '../index.js'
import { SessionError } from './errors.js'
import type { Grants } from './grants.js'
import { modelOf } from './options.js'
import type { ChatMeans, ModeHarness, Modes } from './options.js'
import { callOf } from './thread/reduce-chat.js'
import type { ChatRun } from './thread/reduce-chat.js'
import type { ThreadRun, ThreadState } from './thread/thread-state.js'
import { clientToolsIn } from './tools/client-tools.js'
import { planOutcome, SUBMIT_PLAN } from './tools/submit-plan.js'
import type { PlanOutcome } from './tools/submit-plan.js'

export interface RunStarterSetup {
  readonly log: LogStore
  readonly modes: Modes
  readonly defaultMode: string
  readonly use: readonly Extension<never>[]
  readonly resolveModel: ((reference: ModelRef) => Model | Promise<Model>) | null
  /** Is called when the thread has got means of its own, which are not stored. */
  readonly onProvided: () => void
}

/** Options that every stretch of a run has. */
export type RunMeans = NonNullable<Parameters<ModeHarness['streamRecover']>[1]> & { readonly deps?: unknown }

/** A stretch of a run that is about to begin. */
export interface Stretch {
  readonly run: ThreadRun
  readonly port: InputPort
  readonly abort: AbortController
  /** The answer to a plan stops the run before its next request: it continues in another mode, or ends. */
  readonly onPlan: (outcome: PlanOutcome) => void
  /** The run so far. */
  readonly shown: ChatRun | undefined
}

/** Gives the runs of a thread their harness, model and extensions. */
export class RunStarter {
  readonly #setup: RunStarterSetup
  readonly #grants: Grants
  #means: ChatMeans = {}

  constructor(setup: RunStarterSetup, grants: Grants) {
    this.#setup = setup
    this.#grants = grants
  }

  /** Means of the runs that begin or continue from now on. */
  provide(means: ChatMeans): void {
    this.#means = means
    if (Object.keys(means).some((name) => name !== 'deps')) this.#setup.onProvided()
  }

  /** The tools of a run; none if there is no run. */
  async toolsOf(run: ThreadRun | null): Promise<HarnessDescription['tools']> {
    return run === null ? [] : (await this.harnessOf(run).describe()).tools
  }

  /** The harness of a mode; that of the default mode if there is no such mode any more. */
  harnessOf({ mode }: Pick<ThreadRun, 'mode'>): ModeHarness {
    const { modes, defaultMode } = this.#setup
    const harness = modes[mode] ?? modes[defaultMode]
    if (harness === undefined) throw new SessionError('unknown_mode', `There is no mode \`${mode}\`.`)
    return harness
  }

  /** Throws a `SessionError` for a part of a kind that the model is known not to take. One that is unknown takes everything. */
  async checkKinds(content: readonly ContentPart[], run: Pick<ThreadRun, 'mode' | 'model'>): Promise<void> {
    const media = content.filter((part) => part.type !== 'text')
    if (media.length === 0) return
    // A model that cannot be used is a problem of the run.
    const inputs = await this.#inputsOf(run).catch(() => undefined)
    const refused = media.find(({ type }) => inputs?.includes(type) === false)
    if (refused === undefined) return
    const name = run.model === null ? `The model of mode \`${run.mode}\`` : `Model \`${run.model}\``
    const kinds = inputs?.join(', ') || 'text alone'
    throw new SessionError(
      'unsupported_media',
      `${name} does not take the kind \`${refused.type}\`: it takes ${kinds}.`,
    )
  }

  async #inputsOf({ mode, model }: Pick<ThreadRun, 'mode' | 'model'>): Promise<ModelCapabilities['inputs']> {
    const resolved = await modelOf(this.#setup, model)
    return (await this.harnessOf({ mode }).capabilities?.(resolved ?? undefined))?.inputs
  }

  begin(run: ThreadRun, { history, resourceId, threadId }: ThreadState, means: RunMeans): HarnessStream<unknown> {
    const [item] = run.items
    const metadata = { ...item?.metadata, conversation_id: threadId, ...(resourceId !== null && { resourceId }) }
    const content = run.items.flatMap((each) => each.content)
    return this.harnessOf(run).stream(content, { ...means, runId: run.runId, history, metadata })
  }

  async means(stretch: Stretch): Promise<RunMeans> {
    const { log, use } = this.#setup
    const { run, port, abort } = stretch
    const { root, mcpServers, deps, use: own = [] } = this.#means
    const model = await modelOf(this.#setup, run.model)
    return {
      ...{ log, input: port, signal: abort.signal, model: model ?? undefined, root, mcpServers, deps },
      tools: clientToolsIn(run.items[0]?.metadata),
      use: [
        ...use,
        ...own,
        ...(await this.#grants.extensions()),
        ...(hasPlan(stretch.shown) ? [this.#planning(stretch)] : []),
      ],
    }
  }

  /** Stops the run before the request that follows the answer to a plan, when everything before it is stored. */
  #planning({ run, abort, shown, onPlan }: Stretch): Extension {
    const { modes } = this.#setup
    let outcome = shownOutcome(shown)
    return {
      name: 'session',
      hooks: [
        {
          event: 'after_tool_call',
          tools: [SUBMIT_PLAN],
          handler({ runId, originalOutput }) {
            if (runId === run.runId) outcome = planOutcome(originalOutput)
            return undefined
          },
        },
      ],
      notices() {
        if (outcome === null || outcome.mode === run.mode) return []
        // The plan of a mode that does not exist is carried out in this one.
        if (outcome.mode !== null && !Object.hasOwn(modes, outcome.mode)) return []
        onPlan(outcome)
        abort.abort(new HarnessError('interrupted', 'The plan was answered.'))
        return []
      },
    }
  }
}

/** The outcome of a plan whose answer was the last that the run stored: after a crash. */
function shownOutcome(run: ChatRun | undefined): PlanOutcome | null {
  const last = run?.entries.at(-1)
  const part = last?.role === 'assistant' ? last.parts.find(({ type }) => type === 'tool_call') : undefined
  const call = part?.type === 'tool_call' ? callOf(run, part.callId) : undefined
  return call?.toolName === SUBMIT_PLAN && call.output !== undefined ? planOutcome(call.output) : null
}

function hasPlan(run: ChatRun | undefined): boolean {
  return run?.calls.some(({ toolName }) => toolName === SUBMIT_PLAN) === true
}
