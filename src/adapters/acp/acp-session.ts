import type {
  AgentContext,
  ContentBlock,
  CreateElicitationResponse,
  ElicitationContentValue,
  PromptResponse,
  RequestPermissionResponse,
  SessionUpdate,
} from '@agentclientprotocol/sdk'
import { HarnessError } from '#contracts/errors.js'
import type { PendingItem } from '#contracts/result.js'
import type { RunOptions } from '#harness/options.js'
import { SessionError } from '#session/errors.js'
import type { ChatAnswer } from '#session/thread/grants.js'
import { isAborted } from '#util/abort.js'
import { contentParts } from './content-blocks.js'
import type { PromptEnd, StretchEnd } from './updates.js'
import { invalidRequest, internalError } from './protocol.js'
import type { AcpOptions, AcpChat, AcpSessions } from './options.js'
import { AcpProjection } from './projection.js'
import { askedItem } from './questions.js'
import type { AskedItem } from './questions.js'
import type { ToolFacts } from './shown-call.js'
import { Updates } from './updates.js'

/** What an editor can show. */
export interface ClientFeatures {
  readonly forms: boolean
  readonly notices: boolean
}

export interface AcpSessionSetup {
  readonly sessions: AcpSessions
  readonly chat: AcpChat
  readonly client: AgentContext
  readonly features: ClientFeatures
  readonly options: AcpOptions
  /** The workspace: an absolute path. */
  readonly root: string
  /** Send the conversation so far. */
  readonly replays: boolean
  /** The means of the session's runs: closed with it. */
  readonly servers: NonNullable<RunOptions['mcpServers']>
}

/** A prompt under way. */
interface Prompting {
  readonly controller: AbortController
  readonly done: Promise<unknown>
}

/** One conversation in one editor. */
export class AcpSession {
  readonly chat: AcpChat
  readonly #setup: AcpSessionSetup
  readonly #projection: AcpProjection
  #begunUpdates: Updates | null = null
  /** Ids of the messages of this editor. */
  readonly #own = new Set<string>()
  readonly #tools = new Map<string, ToolFacts>()
  #window: number | null = null
  /** The mode and the model that it knows the tools and the window of. */
  #learnt = ''
  #prompting: Prompting | null = null

  private constructor(setup: AcpSessionSetup) {
    const { chat, root, options, features } = setup
    this.chat = chat
    this.#setup = setup
    this.#projection = new AcpProjection({
      root,
      deltas: options.deltas ?? 'live',
      toolOf: (name) => this.#tools.get(name),
      window: () => this.#window,
      notices: features.notices,
      isOwn: (messageId) => this.#own.has(messageId),
    })
  }

  /** Resolves when everything that had happened before is sent, or passed over. */
  static async open(setup: AcpSessionSetup): Promise<AcpSession> {
    const session = new AcpSession(setup)
    await session.#learn()
    await session.#updates.caughtUp()
    return session
  }

  get isPrompted(): boolean {
    return this.#prompting !== null
  }

  /** Learns of the tools and of the model, for what the editor is shown of them. */
  async #learn(): Promise<void> {
    const { sessions } = this.#setup
    const { mode, models } = this.chat.snapshot.thread
    const learnt = JSON.stringify([mode, models[mode] ?? null])
    if (this.#learnt === learnt) return
    this.#learnt = learnt
    const [described, capabilities] = await Promise.all([
      sessions.describe(mode).catch(() => null),
      sessions.capabilities(mode, models[mode] ?? null).catch(() => null),
    ])
    for (const tool of described?.tools ?? []) this.#tools.set(tool.name, tool)
    this.#window = capabilities?.contextTokens ?? null
  }

  /** They begin when the tools are known. */
  get #updates(): Updates {
    const { chat, replays } = this.#setup
    const setup = { chat, projection: this.#projection, replays, send: (update: SessionUpdate) => this.send(update) }
    return (this.#begunUpdates ??= new Updates(setup))
  }

  send(update: SessionUpdate): Promise<void> {
    return this.#setup.client.notify('session/update', { sessionId: this.chat.threadId, update })
  }

  /** Plays a prompt to its end, or to a question that the editor cannot ask in another way than by a message. */
  prompt(blocks: readonly ContentBlock[], signal: AbortSignal): Promise<PromptResponse> {
    return this.#exclusive(signal, async (stop) => {
      const text = blocks.map((block) => (block.type === 'text' ? block.text : '')).join('\n')
      const waiting = this.chat.phase === 'waiting' ? await this.#askAgain(text, stop) : 'message'
      if (waiting !== 'message' && waiting !== 'decline') return waiting
      const messageId = this.#newMessageId()
      const whenBusy = waiting === 'decline' ? 'decline' : 'queue'
      const sending = this.chat.send(contentParts(blocks), { messageId, whenBusy })
      const withdrawMessage = (): void =>
        void sending.then(() => this.chat.queue.remove(messageId)).catch(() => undefined)
      stop.addEventListener('abort', withdrawMessage, { once: true })
      const { status, runId, error } = await (await sending).done
      // No run could read it.
      if (runId === null && error !== undefined) throw error
      if (status === 'removed' || runId === null) return { stopReason: 'cancelled' }
      return this.#play(await this.#updates.endOf(runId, 0), stop)
    })
  }

  /** Gives a message to the run in progress. */
  async steer(blocks: readonly ContentBlock[], signal: AbortSignal): Promise<PromptResponse> {
    const sent = await this.chat.steer(contentParts(blocks), { messageId: this.#newMessageId(), signal })
    const { status } = await sent.done
    return { stopReason: status === 'cancelled' || status === 'removed' ? 'cancelled' : 'end_turn' }
  }

  /** Continues an interrupted run. */
  recover(signal: AbortSignal): Promise<PromptResponse> {
    return this.#exclusive(signal, async (stop) => {
      const run = this.chat.snapshot.runs.at(-1)
      if (run === undefined || !(await this.chat.recover()))
        throw invalidRequest('No run of this session was interrupted.')
      return this.#play(await this.#updates.endOf(run.runId, run.seq), stop)
    })
  }

  /** Asks what a session waits for that was just loaded. */
  async askNow(): Promise<void> {
    if (this.chat.phase !== 'waiting') return
    await this.#exclusive(new AbortController().signal, async (stop) => {
      const run = this.chat.snapshot.runs.at(-1)
      if (run === undefined) return { stopReason: 'end_turn' }
      return this.#play({ ...run, isPaused: true, end: { stopReason: 'end_turn' } }, stop)
    })
  }

  /** Stops the prompt under way, and resolves when it is answered. A run that waits for people keeps waiting. */
  async cancel(): Promise<void> {
    const prompting = this.#prompting
    prompting?.controller.abort()
    await prompting?.done.catch(() => undefined)
  }

  /** The editor is gone. Its prompt is cancelled, unless somebody else follows the conversation: then the run goes on. */
  async leave(): Promise<void> {
    await this.#updates.stop()
    if (this.#prompting === null || !this.chat.isFollowed) return this.close()
    void this.#prompting.done.catch(() => undefined).then(() => this.#closeServers())
  }

  /** Forgets the session, not its log. */
  async close(): Promise<void> {
    await this.cancel()
    await this.#updates.stop()
    await this.#closeServers()
  }

  async #closeServers(): Promise<void> {
    await Promise.all(this.#setup.servers.map(async (server) => server.close()))
  }

  /** The prompt of a session that waits asks again first. The end of the prompt, or what becomes of its message. */
  async #askAgain(text: string, stop: AbortSignal): Promise<PromptResponse | 'message' | 'decline'> {
    const run = this.chat.snapshot.runs.at(-1)
    const asked = await this.#ask(stop, text)
    if (stop.aborted) return { stopReason: 'cancelled' }
    if (asked === 'answered by text' && run !== undefined)
      return this.#play(await this.#updates.endOf(run.runId, run.seq), stop)
    return asked === 'answered' ? 'message' : 'decline'
  }

  /** To the end of the run, with everything that people are asked meanwhile. */
  async #play(first: StretchEnd | null, stop: AbortSignal): Promise<PromptResponse> {
    let end = first
    while (end?.isPaused === true) {
      const asked = await this.#ask(stop)
      if (stop.aborted || asked === 'cancelled') return { stopReason: 'cancelled' }
      if (asked === 'over') return { stopReason: 'end_turn' }
      end = await this.#updates.endOf(end.runId, end.seq)
    }
    return promptResponse(end?.end ?? { stopReason: 'cancelled' })
  }

  /**
   * Asks everything that waits, each item by its own request, and answers the run once the last is in. `over`: something keeps
   * waiting. `cancelled`: so does all of it, for the editor has cancelled a request for permission. `text`: the person's message, which
   * answers a question that was asked by one.
   */
  async #ask(
    stop: AbortSignal,
    text: string | null = null,
  ): Promise<'answered' | 'answered by text' | 'over' | 'cancelled'> {
    if (stop.aborted) return 'over'
    await this.#learn()
    const { root, options, features } = this.#setup
    const means = {
      root,
      remember: options.remember,
      forms: features.forms,
      toolOf: (name: string) => this.#tools.get(name),
    }
    const items = this.chat.pending.map((item) => ({ item, asked: askedItem(item, means) }))
    const byText = text === null ? undefined : items.find(({ asked }) => asked.kind === 'text')
    const answers = await Promise.all(
      items.map(async ({ item, asked }): Promise<ChatAnswer | 'cancelled' | null> =>
        item === byText?.item ? { callId: item.callId, answer: text ?? '' } : this.#askOne(item, asked, stop),
      ),
    )
    if (isAborted(stop)) return 'over'
    if (answers.includes('cancelled')) return 'cancelled'
    const given = answers.filter((answer) => answer !== null && answer !== 'cancelled')
    if (given.length < items.length) {
      // Other items may have been asked by a form or a request, and are answered.
      if (given.length > 0) await this.#answer(given)
      return 'over'
    }
    const isAnswered = await this.#answer(given)
    if (!isAnswered) return 'over'
    return byText === undefined ? 'answered' : 'answered by text'
  }

  /** False if the answers were refused: a text need not fit its question. */
  async #answer(answers: readonly ChatAnswer[]): Promise<boolean> {
    try {
      await this.chat.answer(answers)
      return true
    } catch (error) {
      const isUnfit =
        (error instanceof SessionError || error instanceof HarnessError) && error.code === 'invalid_answer'
      if (!isUnfit) throw error
      return false
    }
  }

  /** Null: the item keeps waiting. */
  async #askOne(item: PendingItem, asked: AskedItem, stop: AbortSignal): Promise<ChatAnswer | 'cancelled' | null> {
    const { client } = this.#setup
    const sessionId = this.chat.threadId
    const waiting = { cancellationSignal: stop, stopWaitingOnCancel: true }
    try {
      if (asked.kind === 'text') {
        await this.send(messageUpdate(item, asked.message))
        return null
      }
      if (asked.kind === 'form') {
        const { message, form } = asked
        const request = {
          mode: 'form',
          sessionId,
          toolCallId: item.callId,
          message,
          requestedSchema: form.schema,
        } as const
        const given: CreateElicitationResponse = await withCancel(
          client.request('elicitation/create', request, waiting),
        )
        if (given.action === 'decline') return { callId: item.callId, declined: true }
        if (given.action !== 'accept' || !('content' in given)) return null
        return {
          callId: item.callId,
          answer: form.answerOf((given.content ?? {}) as Record<string, ElicitationContentValue>),
        }
      }
      const { toolCall, choices } = asked
      const options = choices.map(({ option }) => option)
      const request = { sessionId, toolCall, options }
      const { outcome }: RequestPermissionResponse = await withCancel(
        client.request('session/request_permission', request, waiting),
      )
      if (stop.aborted) return null
      if (outcome.outcome !== 'selected') return 'cancelled'
      return (await choices.find(({ option }) => option.optionId === outcome.optionId)?.answer()) ?? null
    } catch (error) {
      // The editor withdrew the request, or is gone: the run keeps waiting.
      if (stop.aborted || isRequestError(error)) return null
      throw error
    }
  }

  async #exclusive(signal: AbortSignal, work: (stop: AbortSignal) => Promise<PromptResponse>): Promise<PromptResponse> {
    if (this.#prompting !== null) throw invalidRequest('A prompt of this session is under way.')
    const controller = new AbortController()
    // If the connection has ended instead, `leave` decides.
    const abortWork = (): void => {
      if (isRequestError(signal.reason)) controller.abort()
    }
    signal.addEventListener('abort', abortWork, { once: true })
    controller.signal.addEventListener('abort', () => void this.#stopRun(), { once: true })
    if (signal.aborted) abortWork()
    const done = this.#learn().then(() => work(controller.signal))
    this.#prompting = { controller, done }
    try {
      return await done
    } catch (error) {
      if (controller.signal.aborted) return { stopReason: 'cancelled' }
      throw requestFailure(error)
    } finally {
      this.#prompting = null
      signal.removeEventListener('abort', abortWork)
    }
  }

  /** A run that waits for people is left as it is. */
  async #stopRun(): Promise<void> {
    const { phase } = this.chat
    if (phase !== 'waiting' && phase !== 'interrupted') await this.chat.cancel().catch(() => undefined)
  }

  #newMessageId(): string {
    const messageId = `msg_${crypto.randomUUID().replaceAll('-', '')}`
    this.#own.add(messageId)
    return messageId
  }
}

function messageUpdate({ callId, path }: PendingItem, text: string): SessionUpdate {
  const messageId = `${path[0] ?? ''}:${callId}`
  return { sessionUpdate: 'agent_message_chunk', messageId, content: { type: 'text', text } }
}

function promptResponse(end: PromptEnd): PromptResponse {
  if ('failure' in end) throw internalError(end.failure.message, end.failure.data)
  return end
}

/** The answer to a request, once a `session/cancel` that came in one write with it has been read. */
async function withCancel<Answer>(answer: Promise<Answer>): Promise<Answer> {
  const given = await answer
  await new Promise(setImmediate)
  return given
}

function isRequestError(error: unknown): boolean {
  return error instanceof Error && error.name === 'RequestError'
}

/** A refused message as an error of the protocol. */
function requestFailure(error: unknown): unknown {
  return error instanceof SessionError ? invalidRequest(error.message, { code: error.code }) : error
}
