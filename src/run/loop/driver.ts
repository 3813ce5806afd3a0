import { HarnessError } from '../../contracts/errors.js'
import { renderNotices, withNotices } from '../../contracts/notices.js'
import type { Notice } from '../../contracts/notices.js'
import type { PendingItem } from '../../contracts/result.js'
import { renderEnvelope } from '../../tools/boundary/envelope.js'
import { contentOf, entryId, textOf } from '../../contracts/entry.js'
import type { ToolEntry, Unstamped, UserEntry } from '../../contracts/entry.js'
import { reportEntries } from '../machine/background-state.js'
import { isSameConfig } from '../machine/config-digest.js'
import type { ConfigDigest } from '../machine/config-digest.js'
import type { RunContext } from '../core/context.js'
import { decide, decideSteering } from '../machine/decide.js'
import type { Command, Correction } from '../machine/decide.js'
import type { Effects, HostNotices } from '../core/effects.js'
import type { RequestKind } from '../machine/events.js'
import { RunStopped } from '../core/failure.js'
import type { Frozen } from '../core/frozen.js'
import { retryBudget } from '../machine/rules.js'
import { lengthWhenClosed } from '../machine/closing.js'
import type { BatchCall } from '../machine/batch-call.js'

/** What a run came to, before it is a result. */
export interface Ending {
  readonly text: string
  readonly output: unknown
  readonly pending: readonly PendingItem[]
}

const NOT_PARSED = Symbol('no answer has been parsed here')

type Ask = Command & { kind: 'ask' }
type Said = Unstamped<UserEntry | ToolEntry>
type Begun = Pick<Ask, 'notices' | 'closing'> & {
  readonly said: readonly Said[]
  readonly promptAddition: string
  readonly host: HostNotices | null
  readonly config: ConfigDigest
}

/** The loop of one run: decide, perform, apply, until a decision is terminal. */
export class TurnDriver {
  readonly #context: RunContext
  readonly #frozen: Frozen
  readonly #promptAddition: string
  readonly #effects: Effects
  /** The answer as the caller's schema parsed it. */
  #value: unknown = NOT_PARSED

  /** `promptAddition` is the text that hooks add to the prompt; empty if they add none. */
  constructor(
    context: RunContext,
    frozen: Frozen,
    { effects, promptAddition }: { readonly effects: Effects; readonly promptAddition: string },
  ) {
    this.#context = context
    this.#frozen = frozen
    this.#promptAddition = promptAddition
    this.#effects = effects
    context.tracer?.constants(frozen.constants)
  }

  /** Rejects with whatever ended the run before its time. */
  async drive(): Promise<Ending> {
    for (;;) {
      await this.#effects.tellBackground('now')
      this.#context.signal.throwIfAborted()
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
        case 'await_background':
          if (!(await this.#steer())) await this.#effects.tellBackground('next')
          break
        case 'end_background':
          await this.#effects.endBackground()
          break
        case 'wait':
          // What can go on without people does so first.
          if (await this.#effects.tellBackground('all')) break
          return { text: this.#lastText(), output: null, pending: command.items }
        case 'fail':
          throw new RunStopped(command.failure)
        case 'ended':
          throw new HarnessError('invalid_state', `Run \`${this.#context.runId}\` has ended: it cannot go on.`)
      }
    }
  }

  async #ask(command: Ask): Promise<void> {
    const { requestKind, correction, notices, closing } = command
    const config = await this.#effects.configure()
    if (correction !== null) {
      await this.#context.emit('model_retry', { retryKind: 'structured_output', ...correction })
    }
    const host = this.#context.seams.notices.length === 0 ? null : await this.#effects.hostNotices()
    await this.#begin(requestKind, { notices, host, config, closing, ...this.#additions(command) })
    for (const { limitKind, remaining, content } of notices) {
      await this.#context.emit('limit_warning', { limitKind, remaining, content })
    }
    await this.#request(requestKind)
  }

  /** The new entries of a request, and the text that it adds to the prompt. Notices come last. */
  #additions(command: Ask): Pick<Begun, 'said' | 'promptAddition'> {
    const { requestKind, notices } = command
    const said = this.#said(command)
    const isFirst = requestKind === 'start' || requestKind === 'resume'
    if (!isFirst) return { said: withNoticesLast(said, notices), promptAddition: '' }
    const inPrompt = said.length === 0 ? notices : []
    const promptAddition = [this.#promptAddition, renderNotices(inPrompt)].filter((text) => text !== '').join('\n\n')
    return { said: said.length === 0 ? [] : withNoticesLast(said, notices), promptAddition }
  }

  /** The entries that the harness adds to a request, without the notices. */
  #said({ correction }: Ask): Said[] {
    const said: Said[] = []
    if (correction !== null) said.push(correctionEntry(correction))
    said.push(...reportEntries(this.#context.state))
    for (const message of this.#frozen.input?.take() ?? []) said.push({ role: 'user', content: contentOf(message) })
    return said
  }

  async #begin(
    requestKind: RequestKind,
    { said, promptAddition, notices, host, config, closing }: Begun,
  ): Promise<void> {
    const { state, clock } = this.#context
    const first = lengthWhenClosed(state)
    const at = clock.iso()
    const { provider, id: model } = this.#frozen.model
    const entries = host === null ? said : [...said, host.entry]
    await this.#context.emit('model_request_started', {
      requestKind,
      provider,
      model,
      entries: entries.map((entry, index) => ({ id: entryId(first + index), at, ...entry })),
      notices: notices.map((notice) => notice.key),
      ...(promptAddition !== '' && { promptAddition }),
      ...(state.config !== null && isSameConfig(state.config, config) ? {} : { config }),
      ...(closing !== null && { closing }),
      ...(host !== null && { hostNotices: host.notices }),
    })
  }

  async #request(requestKind: RequestKind): Promise<void> {
    const { message, value } = await this.#effects.ask(requestKind)
    this.#value = value
    await this.#context.emit('model_message', message)
  }

  async #runTools(calls: readonly BatchCall[]): Promise<void> {
    await this.#effects.runTools(calls)
    const { streaks, rules } = this.#context.state
    for (const { callId, name, settled } of calls) {
      const retryKind = settled?.retryKind ?? null
      if (retryKind === null || Number(streaks[name]) > retryBudget(rules, name)) continue
      const message = `\`${name}\` failed with ${retryKind}; the model may try again.`
      await this.#context.emit('model_retry', { retryKind: 'tool_retry', message, callId })
    }
  }

  /** What was said to the running model goes before its answer, where the budget allows one more request. */
  async #steer(): Promise<boolean> {
    const { input } = this.#frozen
    if (input === null || input.waiting === 0) return false
    const command = decideSteering(this.#context.state)
    if (command.kind !== 'ask') return false
    await this.#ask(command)
    return true
  }

  /** The answer as the caller's schema parses it; of a reply that came before the run went on here, it is parsed again. */
  async #answer(): Promise<unknown> {
    if (this.#value !== NOT_PARSED) return this.#value
    const { phase } = this.#context.state
    const output = phase.at === 'answered' && phase.resolution.kind === 'final' ? phase.resolution.output : undefined
    return output === undefined ? this.#lastText() : this.#frozen.readAnswer(output)
  }

  #lastText(): string {
    const last = this.#context.state.transcript.at(-1)
    return last?.role === 'assistant' ? textOf(last.parts) : ''
  }
}

function correctionEntry({ message, callId }: Correction): Said {
  if (callId === null) return { role: 'user', content: [{ type: 'text', text: message }], notice: true }
  const envelope = { ok: false, content: message, metadata: { error_type: 'ValidationError', retry: true } }
  return { role: 'tool', callId, name: 'final_result', content: renderEnvelope(envelope), isError: true }
}

/** Notices come last in a request: in the text of what is said anyhow, else as an entry of their own. */
function withNoticesLast(said: readonly Said[], notices: readonly Notice[]): readonly Said[] {
  if (notices.length === 0) return said
  const last = said.at(-1)
  // A report stays as it is: it is another's word.
  if (last?.role !== 'user' || last.source !== undefined)
    return [...said, { role: 'user', content: withNotices([], notices), notice: true }]
  return [...said.slice(0, -1), { ...last, content: withNotices(last.content, notices) }]
}
