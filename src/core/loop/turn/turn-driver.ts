import { HarnessError, messageOf } from '#contracts/errors.js'
import { renderNotices, withNotices } from '#contracts/notices.js'
import type { HarnessNotice } from '#contracts/notices.js'
import type { PendingItem } from '#contracts/result.js'
import { renderEnvelope } from '../../tools/boundary/envelope.js'
import { contentOf, entryId, textOf } from '#contracts/entry.js'
import type { ToolEntry, Unstamped, UserEntry } from '#contracts/entry.js'
import type { IdentifiedMessage, InputMessage, InputPort } from '../../stream/input.js'
import { reportEntries } from '../../state/background-state.js'
import { isSameConfig } from '../../state/config-digest.js'
import type { RunContext } from '../run-context.js'
import { decide, decideSteering, hasOtherRuns } from '../decide.js'
import type { Command, Correction } from '../decide.js'
import type { Effects } from '../effects.js'
import type { RequestKind } from '../../state/events.js'
import { RunStopped } from '../run-failure.js'
import type { RunSetup } from '../run-plan.js'
import { retryBudget } from '../../state/run-rules.js'
import { lengthWhenClosed } from '../../state/closing.js'
import type { BatchCall } from '../../state/batch-call.js'

/** The end of a run, before it is a result. */
export interface Ending {
  readonly text: string
  readonly output: unknown
  readonly pending: readonly PendingItem[]
}

const NOT_PARSED = Symbol('no answer has been parsed here')

type Ask = Command & { kind: 'ask' }
type Said = Unstamped<UserEntry | ToolEntry>

/** The loop of one run: decide, perform, apply, until a decision is terminal. */
export class TurnDriver {
  readonly #context: RunContext
  readonly #setup: RunSetup
  readonly #promptAddition: string
  readonly #effects: Effects
  readonly #hasHostNotices: boolean
  /** Messages to the run that its next request contains. */
  readonly #steering: { readonly content: InputMessage; readonly messageId?: string }[] = []
  /** The answer as the caller's schema parsed it. */
  #value: unknown = NOT_PARSED

  /** `promptAddition` is the text that hooks add to the prompt; empty if they add none. */
  constructor(
    context: RunContext,
    setup: RunSetup,
    { effects, promptAddition }: { readonly effects: Effects; readonly promptAddition: string },
  ) {
    this.#context = context
    this.#setup = setup
    this.#promptAddition = promptAddition
    this.#effects = effects
    this.#hasHostNotices = context.extensions.notices.length > 0
    context.tracer?.constants(setup.constants)
    setup.plan.input?.attach?.((message) => context.admit(message, 'steering'))
  }

  /** Rejects with whatever ended the run before its time. */
  async drive(): Promise<Ending> {
    const { abort } = this.#context
    for (;;) {
      // Nothing begins in a run that is being left: it waits for work in progress.
      if (abort.isLeaving) await abort.aborted()
      if (hasOtherRuns(this.#context.state)) await this.#effects.takeReports('now')
      if (abort.isAborted) throw abort.signal.reason
      const command = decide(this.#context.state)
      switch (command.kind) {
        case 'ask':
          await this.#ask(command)
          break
        case 'ask_again':
          await this.#request(command.requestKind)
          break
        case 'run_tools':
          await this.#runTools(command.calls)
          break
        case 'refuse_calls':
          await this.#effects.refuseCalls(command.calls)
          break
        case 'settle_unknown':
          await this.#effects.settleUnknown(command.calls)
          break
        case 'finish':
          if (await this.#steer()) break
          return { text: this.#lastText(), output: await this.#answer(), pending: [] }
        case 'await_others':
          if (!(await this.#steer())) await this.#effects.takeReports('next')
          break
        case 'end_others':
          await this.#effects.endOthers()
          break
        case 'wait':
          // Other runs that need no answer continue first.
          if (await this.#effects.takeReports('all')) break
          return { text: this.#lastText(), output: null, pending: command.items }
        case 'fail':
          throw new RunStopped(command.failure)
        case 'ended':
          throw new HarnessError('invalid_state', `Run \`${this.#context.runId}\` has ended and cannot continue.`)
      }
    }
  }

  async #ask({ requestKind, correction, notices, closing }: Ask): Promise<void> {
    const context = this.#context
    const { input } = this.#setup.plan
    if (input !== null && (input.settled === undefined || input.waiting > 0)) await this.#takeSteering(input)
    const config = await this.#effects.configure()
    if (correction !== null) await context.emit('model_retry', { retryKind: 'structured_output', ...correction })
    const host = this.#hasHostNotices ? await this.#effects.hostNotices() : null
    const { said, promptAddition } = this.#additions(requestKind, correction, notices)
    if (host !== null) said.push(host.entry)
    const { state, clock } = context
    const { provider, id: model } = this.#setup.model
    const at = clock.iso()
    const entries: (UserEntry | ToolEntry)[] = []
    let length = lengthWhenClosed(state)
    for (const entry of said) entries.push(Object.assign({ id: entryId(length++), at }, entry))
    const isSame = state.config === config || (state.config !== null && isSameConfig(state.config, config))
    await context.emit('model_request_started', {
      requestKind,
      provider,
      model,
      entries,
      notices: notices.map((notice) => notice.key),
      ...(promptAddition !== '' && { promptAddition }),
      ...(!isSame && { config }),
      ...(closing !== null && { closing }),
      ...(host !== null && { hostNotices: host.notices }),
    })
    for (const { limitKind, remaining, content } of notices)
      await context.emit('limit_warning', { limitKind, remaining, content })
    await this.#request(requestKind)
  }

  /** The entries that the harness adds to a request, and the text that it adds to the prompt. Notices come last. */
  #additions(
    requestKind: RequestKind,
    correction: Correction | null,
    notices: readonly HarnessNotice[],
  ): { readonly said: Said[]; readonly promptAddition: string } {
    const { state } = this.#context
    const said: Said[] = []
    if (correction !== null) said.push(correctionEntry(correction))
    if (hasOtherRuns(state)) said.push(...reportEntries(state))
    said.push(...this.#steering.splice(0).map(steeringEntry))
    const isFirst = requestKind === 'start' || requestKind === 'resume'
    const inPrompt = isFirst && said.length === 0 ? notices : []
    if (inPrompt.length < notices.length) placeLast(said, notices)
    if (!isFirst) return { said, promptAddition: '' }
    const added = [this.#promptAddition, renderNotices(inPrompt)].filter((text) => text !== '')
    return { said, promptAddition: added.join('\n\n') }
  }

  async #request(requestKind: RequestKind): Promise<void> {
    const { message, value } = await this.#effects.ask(requestKind)
    this.#value = value
    await this.#context.emit('model_message', message)
  }

  async #runTools(calls: readonly BatchCall[]): Promise<void> {
    await this.#effects.runTools(calls)
    const { streaks, rules } = this.#context.state
    if (rules.computed === true) return
    for (const { callId, name, settled } of calls) {
      const retryKind = settled?.retryKind ?? null
      if (retryKind === null || Number(streaks[name]) > retryBudget(rules, name)) continue
      const message = `\`${name}\` failed with ${retryKind}; the model may try again.`
      await this.#context.emit('model_retry', { retryKind: 'tool_retry', message, callId })
    }
  }

  /** Takes the messages that wait, as the extensions let them pass; the run goes on without the others. */
  async #takeSteering(input: InputPort): Promise<void> {
    await input.settled?.()
    for (const message of input.take()) {
      const { content, ...identified } = isIdentified(message) ? message : { content: message }
      try {
        const isAdmitted = input.attach !== undefined
        const admitted = isAdmitted ? content : await this.#context.admit(content, 'steering')
        this.#steering.push({ ...identified, content: admitted })
      } catch (error) {
        this.#context.emitLive('warning', { message: messageOf(error) })
      }
    }
  }

  /** Steering messages come before the answer, if the budget allows one more request. */
  async #steer(): Promise<boolean> {
    const { input } = this.#setup.plan
    if (input === null || input.waiting === 0) return false
    const command = decideSteering(this.#context.state)
    if (command.kind !== 'ask') return false
    await this.#takeSteering(input)
    if (this.#steering.length === 0) return false
    await this.#ask(command)
    return true
  }

  /** The answer as the caller's schema parses it; the answer of a reply from before the run was continued is parsed again. */
  async #answer(): Promise<unknown> {
    if (this.#value !== NOT_PARSED) return this.#value
    const { phase } = this.#context.state
    const output = phase.at === 'answered' && phase.resolution.kind === 'final' ? phase.resolution.output : undefined
    return output === undefined ? this.#lastText() : this.#setup.plan.answer.read(output)
  }

  #lastText(): string {
    const last = this.#context.state.transcript.at(-1)
    return last?.role === 'assistant' ? textOf(last.parts) : ''
  }
}

function isIdentified(message: InputMessage | IdentifiedMessage): message is IdentifiedMessage {
  return typeof message !== 'string' && 'messageId' in message
}

function steeringEntry({ content, ...identified }: Omit<IdentifiedMessage, 'messageId'>): Said {
  return { role: 'user', content: contentOf(content), ...identified }
}

function correctionEntry({ message, callId }: Correction): Said {
  if (callId === null) return { role: 'user', content: [{ type: 'text', text: message }], notice: true }
  const envelope = { ok: false, content: message, metadata: { error_type: 'ValidationError', retry: true } }
  return { role: 'tool', callId, name: 'final_result', content: renderEnvelope(envelope), isError: true }
}

/** Adds notices to the last message of the user, else as an entry of their own. */
function placeLast(said: Said[], notices: readonly HarnessNotice[]): void {
  const last = said.at(-1)
  // A report stays as it is: its content is that of another run.
  if (last?.role !== 'user' || last.source !== undefined)
    said.push({ role: 'user', content: withNotices([], notices), notice: true })
  else said[said.length - 1] = { ...last, content: withNotices(last.content, notices) }
}
