import { createHash } from 'node:crypto'
import { HarnessError } from '#contracts/errors.js'
import type { Answer } from '#core/state/answers.js'
import type { ConfigPolicy } from '#core/state/config-digest.js'
import type { ContentPart } from '#contracts/entry.js'
import type { Extension } from '#core/extension/extension.js'
import { admittedInput, INPUT_IS_ASKED } from '#contracts/input.js'
import type { InputAbout } from '#contracts/input.js'
import { membersOf } from '#core/extension/run-extensions.js'
import type { RunEvent, StreamEvent } from '#core/state/events.js'
import type { HarnessDescription } from '#harness/launch/describe.js'
import type { HarnessStream } from '#core/stream/stream.js'
import type { IdentifiedMessage, InputMessage, InputPort } from '#core/stream/input.js'
import type { LogStore } from '#core/log/log.js'
import type { Model, ModelCapabilities } from '#core/model-session.js'
import type { ModelRef } from '#contracts/model-reference.js'
import { trusted } from '#contracts/trusted.js'
import type { ResumeOptions, RunOptions } from '#harness/options.js'
import type { PolicyExtension } from '#extensions/policy/policy.js'
import { codedError, SessionError } from '../errors.js'
import type { Grants } from '../thread/grants.js'
import type { MessageOutcome } from './message.js'
import { checkMode, resolvedModel } from './modes.js'
import type { ModeHarness, Modes } from './modes.js'
import { Redaction } from './redaction.js'
import { doNothing } from './mutex.js'
import { findCall, textOfRun } from '../thread/reduce-chat.js'
import type { ChatRun, ChatSnapshot } from '../thread/reduce-chat.js'
import type { QueueItem, ReplacedRuns } from '../thread/thread-events.js'
import type { ThreadRun, ThreadState } from '../thread/thread-state.js'
import { readClientTools } from '../tools/client-tools.js'
import { planOutcome, SUBMIT_PLAN } from '../tools/ask-people.js'
import type { PlanOutcome } from '../tools/ask-people.js'

/** What the runs of one conversation have in this process alone: it is not stored. */
export interface ChatResources extends Pick<RunOptions, 'root' | 'mcpServers'> {
  /** Extensions, after those of the sessions. Default: none. */
  readonly use?: readonly Extension<never>[] | undefined
  /**
   * Dependencies, in place of those of the harness: for requests that bring them. They do not hold the conversation in memory. Default:
   * those of the harness.
   */
  readonly deps?: unknown
}

export interface RunStarterDeps {
  /** For runs: the very object that the sessions were given. */
  readonly log: LogStore
  /** The same, with errors that have codes. */
  readonly store: LogStore
  readonly modes: Modes
  readonly defaultMode: string
  readonly use: readonly Extension<never>[]
  readonly resolveModel: ((reference: ModelRef) => Model | Promise<Model>) | null
  /** The configuration with which runs continue; undefined: that of their harness decides. */
  readonly configPolicy: ConfigPolicy | undefined
  /** Is called when the thread has got resources of its own, which are not stored. */
  readonly onProvided: () => void
}

/** What a conversation needs, besides. */
export interface ConversationDeps extends RunStarterDeps {
  readonly threadId: string
  readonly policy: PolicyExtension | null
  readonly maxQueued: number
}

/** How a run begins or continues. */
export type RunStart = 'begin' | 'recover' | { readonly answers: readonly Answer[] }

/** How a stretch of a run ended. */
export interface RunOutcome {
  readonly end: MessageOutcome
  readonly error?: Error | undefined
}

/** A run in progress in this process. */
export class ActiveRun {
  readonly run: ThreadRun
  readonly port = new SteeringPort()
  readonly abort = new AbortController()
  /** Resolves when its first event is stored, or it has ended: with the error if it could not begin. */
  readonly started: Promise<Error | undefined>
  /** Resolves when it has paused or ended, with the error of one that failed. */
  readonly ended: Promise<Error | undefined>
  /** Resolves when the thread has dealt with its end; never rejects. */
  readonly over: Promise<void>
  /** The queue continues although the run was cancelled. */
  continues = false
  /** The message that continued it after an interruption; null: another event did. */
  continuedFor: string | null = null
  /** Whoever continued it is told its error. */
  isAwaited = false
  /** The answer to a plan stopped it. */
  plan: PlanOutcome | null = null
  markStarted: (error?: Error) => void = doNothing
  markEnded: (error: Error | undefined) => void = doNothing
  markOver: () => void = doNothing

  constructor(run: ThreadRun) {
    this.run = run
    this.started = new Promise((resolve) => (this.markStarted = resolve))
    this.ended = new Promise((resolve) => (this.markEnded = resolve))
    this.over = new Promise((resolve) => (this.markOver = resolve))
  }
}

/** Options that every stretch of a run has. */
type StretchOptions = Omit<ResumeOptions, 'deps'> & { readonly deps?: unknown }

/** Gives the runs of a thread their harness, model and extensions. */
export class RunStarter {
  readonly #deps: RunStarterDeps
  readonly #grants: Grants
  #resources: ChatResources = {}
  /** What is stored as readers get it. */
  redaction: Redaction

  constructor(deps: RunStarterDeps, grants: Grants) {
    this.#deps = deps
    this.#grants = grants
    this.redaction = new Redaction(deps.use, deps.modes)
  }

  /** For the runs that begin or continue from now on. */
  provide(resources: ChatResources): void {
    this.#resources = resources
    this.redaction = new Redaction([...this.#deps.use, ...(resources.use ?? [])], this.#deps.modes)
    if (Object.keys(resources).some((name) => name !== 'deps')) this.#deps.onProvided()
  }

  /** The same, with other dependencies. They do not hold the conversation in memory. */
  provideDeps(deps: unknown): void {
    this.#resources = { ...this.#resources, deps }
  }

  /** The tools of a run; none if there is no run. */
  async toolsOf(run: ThreadRun | null): Promise<HarnessDescription['tools']> {
    return run === null ? [] : (await this.harnessOf(run).describe()).tools
  }

  /** The harness of a mode. Throws a `SessionError` for a mode that is not there any more: others may have other rights. */
  harnessOf({ mode }: Pick<ThreadRun, 'mode'>): ModeHarness {
    const { modes } = this.#deps
    checkMode(modes, mode)
    return modes[mode] as ModeHarness
  }

  /**
   * The mode of a message: the one that it asks for, else that of the thread; the default mode for a thread whose mode is not there
   * any more. Throws a `SessionError` for a message that asks for a mode which is not there.
   */
  modeOf({ mode }: Pick<QueueItem, 'mode'>, state: ThreadState): string {
    const { modes, defaultMode } = this.#deps
    if (mode !== null) checkMode(modes, mode)
    return mode ?? (Object.hasOwn(modes, state.mode) ? state.mode : defaultMode)
  }

  /** Ends a stored run, of whichever mode: no tool runs. */
  async cancel({ runId, mode }: ThreadRun): Promise<void> {
    const { modes, defaultMode, log } = this.#deps
    await this.harnessOf({ mode: Object.hasOwn(modes, mode) ? mode : defaultMode }).cancel(runId, { log })
  }

  /** Reads a stretch of a run to its pause or end; each event goes to `pass`. Never rejects. */
  async play(
    open: ActiveRun,
    start: RunStart,
    chat: { readonly latest: ChatSnapshot; pass(event: RunEvent): void },
  ): Promise<RunOutcome> {
    const { run } = open
    const passOn = (event: StreamEvent): void => {
      // An end that could not be stored: according to the log, the run is interrupted.
      if (event.kind === 'run_failed' && !event.durable) return
      // The answer to a plan: the run goes on in another mode, or its end follows.
      if (event.kind === 'run_left' && open.plan !== null) return
      chat.pass(event)
      if (event.durable) open.markStarted()
    }
    try {
      const stream = await this.#open(open, start, chat.latest)
      const readStream = async (): Promise<void> => {
        for await (const events of stream.batches()) for (const event of events) passOn(event)
      }
      // The result rejects with the same error.
      await readStream().catch(doNothing)
      const result = await stream.result
      return { end: { status: result.status, text: result.text, result, runId: run.runId } }
    } catch (thrown) {
      return outcomeOfError(thrown, run, textOfRun(chat.latest.runs[0]))
    }
  }

  async #open(open: ActiveRun, start: RunStart, { thread, runs }: ChatSnapshot): Promise<HarnessStream<unknown>> {
    const { run } = open
    const harness = this.harnessOf(run)
    const options = await this.#optionsOf(open, runs.at(-1))
    const prompt = run.items.flatMap(({ content }) => content)
    if (start === 'begin') return harness.stream(prompt, { ...options, ...firstOptions(run, thread) })
    const { configPolicy } = this.#deps
    return start === 'recover'
      ? harness.streamRecover(run.runId, { ...options, configPolicy })
      : harness.streamResumeRun(run.runId, start.answers, { ...options, configPolicy })
  }

  /** What somebody says, as the extensions of the sessions and of a mode let it pass. */
  async admit(content: InputMessage, about: InputAbout, mode: string): Promise<InputMessage> {
    const use: readonly Extension<never>[] = [...this.#deps.use, ...(this.#resources.use ?? [])]
    const passed = await admittedInput(membersOf(use as readonly Extension[], 'input'), content, about)
    return (await this.harnessOf({ mode }).input?.(passed, about)) ?? passed
  }

  /** Throws a `SessionError` for a model that neither the sessions nor the harness of the mode know. */
  async checkModel(model: ModelRef | null, mode: string): Promise<void> {
    const resolved = await resolvedModel(this.#deps, model)
    if (typeof resolved !== 'string') return
    await this.harnessOf({ mode })
      .capabilities?.(resolved)
      .catch((cause: unknown) => {
        // A key may be missing here alone.
        if (!(cause instanceof HarnessError) || cause.code !== 'invalid_options') return
        throw new SessionError('unknown_model', cause.message, { cause })
      })
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
    const resolved = await resolvedModel(this.#deps, model)
    return (await this.harnessOf({ mode }).capabilities?.(resolved ?? undefined))?.inputs
  }

  /** `shown`: the run so far. */
  async #optionsOf(open: ActiveRun, shown: ChatRun | undefined): Promise<StretchOptions> {
    const { log, use } = this.#deps
    const { root, mcpServers, deps, use: extensions = [] } = this.#resources
    const model = await resolvedModel(this.#deps, open.run.model)
    const grants = await this.#grants.extensions()
    const planning = hasPlan(shown) ? [this.#planning(open, shown)] : []
    return {
      log,
      input: open.port,
      signal: open.abort.signal,
      model: model ?? undefined,
      root,
      mcpServers,
      deps,
      tools: readClientTools(open.run.items[0]?.metadata),
      use: [...use, ...extensions, ...grants, ...planning, ASKED],
    }
  }

  /** Stops the run before the request that follows the answer to a plan, when everything before it is stored. */
  #planning(open: ActiveRun, shown: ChatRun | undefined): Extension {
    const { modes } = this.#deps
    const { run } = open
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
        open.plan = outcome
        open.abort.abort(new HarnessError('interrupted', 'The plan was answered.'))
        return []
      },
    }
  }
}

/** A message is asked about when it comes, and not again by its run. */
const ASKED: Extension = Object.assign({ name: 'session input' }, { [INPUT_IS_ASKED]: true })

/** Options of a run that begins. */
function firstOptions(
  { runId, items: [item] }: ThreadRun,
  { history, resourceId, threadId }: ThreadState,
): Pick<RunOptions, 'runId' | 'history' | 'metadata'> {
  const metadata = { ...item?.metadata, conversation_id: threadId, ...(resourceId !== null && { resourceId }) }
  return { runId, history: history && trusted(history), metadata }
}

/** The outcome of a plan whose answer was the last that the run stored: after a crash. */
function shownOutcome(run: ChatRun | undefined): PlanOutcome | null {
  const last = run?.entries.at(-1)
  const part = last?.role === 'assistant' ? last.parts.find(({ type }) => type === 'tool_call') : undefined
  const call = part?.type === 'tool_call' ? findCall(run, part.callId) : undefined
  return call?.toolName === SUBMIT_PLAN && call.output !== undefined ? planOutcome(call.output) : null
}

function hasPlan(run: ChatRun | undefined): boolean {
  return run?.calls.some(({ toolName }) => toolName === SUBMIT_PLAN) === true
}

/** The messages for a run in progress. Their entries carry the ids of the messages. */
class SteeringPort implements InputPort {
  #waiting: QueueItem[] = []
  readonly #listeners = new Set<() => void>()

  push(item: QueueItem): void {
    this.#waiting.push(item)
    for (const listener of this.#listeners) listener()
  }

  /** False if the run has taken it. */
  remove(messageId: string): boolean {
    const index = this.#waiting.findIndex((item) => item.messageId === messageId)
    if (index !== -1) this.#waiting.splice(index, 1)
    return index !== -1
  }

  get waiting(): number {
    return this.#waiting.length
  }

  take(): readonly IdentifiedMessage[] {
    const taken = this.#waiting
    this.#waiting = []
    return taken.map(({ messageId, content }) => ({ messageId, content }))
  }

  onSend(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  send(): never {
    throw new TypeError('A message to a run of a thread goes through `chat.steer`.')
  }

  close(): readonly InputMessage[] {
    return []
  }
}

/** The outcome of a run that rejected; `text`: that of its last reply. */
function outcomeOfError(thrown: unknown, { runId }: ThreadRun, text: string): RunOutcome {
  const error = codedError(thrown)
  const { code } = error
  const status = code === 'interrupted' ? 'left' : code === 'cancelled' ? 'cancelled' : 'failed'
  return { end: { status, text, runId, error }, error }
}

/** Another process has claimed the run. */
export function isElsewhere(error: unknown): boolean {
  return error instanceof HarnessError && (error.code === 'run_owned' || error.code === 'run_exists')
}

/**
 * The id of the run that a message begins: the same whenever it is begun again, unless that run has left the conversation. Another
 * owner's thread of the same id, such as a deleted one, has other runs.
 */
export function threadRunId(
  { threadId, resourceId, replaced }: ThreadState,
  messageId: string,
  leaving?: ReplacedRuns,
): string {
  const owner = resourceId === null ? [] : [{ resourceId }]
  const hashedId = (...parts: readonly unknown[]): string =>
    `run_${createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32)}`
  let runId = hashedId(threadId, messageId, ...owner)
  while (replaced.includes(runId) || leaving?.runIds.includes(runId) === true)
    runId = hashedId(threadId, messageId, runId)
  return runId
}
