import type {
  AgentContext,
  ContentBlock,
  CreateElicitationResponse,
  ElicitationContentValue,
  PromptResponse,
  RequestPermissionResponse,
  SessionUpdate,
  ElicitationPropertySchema,
  ElicitationSchema,
  PermissionOption,
  ToolCallUpdate,
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
import type { AcpOptions, AcpChat, AcpSessions, Remember } from './options.js'
import { AcpProjection } from './projection.js'
import type { ToolFacts } from './shown-call.js'
import { Updates } from './updates.js'
import type { JsonSchema, JsonValue } from '#util/json.js'
import { isObject } from '#util/json.js'
import { editDiffs, oneLine, shownCall, textContent } from './shown-call.js'

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

/** How an editor asks for the answer to a pending item. */
type AskedItem =
  | { readonly kind: 'permission'; readonly toolCall: ToolCallUpdate; readonly choices: readonly Choice[] }
  | { readonly kind: 'form'; readonly message: string; readonly form: Form }
  /** As a message of the agent: the next prompt is the answer. */
  | { readonly kind: 'text'; readonly message: string }

/** An option of a permission request, and the answer that it stands for. */
interface Choice {
  readonly option: PermissionOption
  readonly answer: () => ChatAnswer | Promise<ChatAnswer>
}

interface AskingMeans {
  readonly root: string
  readonly toolOf: (name: string) => ToolFacts | undefined
  readonly remember: Remember | undefined
  /** The editor shows forms. */
  readonly forms: boolean
}

function askedItem(item: PendingItem, means: AskingMeans): AskedItem {
  const toolCall = askedToolCall(item, means)
  const choices = answerChoices(item, means.remember)
  if (choices !== null) return { kind: 'permission', toolCall, choices }
  const message = questionText(item)
  const form = means.forms ? questionForm(item) : null
  return form === null ? { kind: 'text', message } : { kind: 'form', message, form }
}

/** The options for a decision; null for a question that has other answers. */
function answerChoices(item: PendingItem, remember: Remember | undefined): readonly Choice[] | null {
  const { kind, callId, payload } = item
  const withAnswer = (answer: JsonValue) => (): ChatAnswer => ({ callId, answer })
  if (kind === 'unknown_outcome')
    return [
      choice('happened', ['It took effect', 'allow_once'], withAnswer({ outcome: 'happened' })),
      choice('did_not_happen', ['It did not take effect', 'reject_once'], withAnswer({ outcome: 'did_not_happen' })),
      choice('run_again', ['Run it again', 'allow_once'], withAnswer({ outcome: 'run_again' })),
    ]
  const form = isObject(payload) ? payload['kind'] : undefined
  if (kind === 'question' && form === 'plan')
    return [
      choice('allow', ['Carry out the plan', 'allow_once'], withAnswer({ action: 'approved' })),
      choice('reject', ['Reject the plan', 'reject_once'], withAnswer({ action: 'rejected' })),
    ]
  if (kind === 'question' && form === 'access')
    return [
      choice('allow', ['Allow', 'allow_once'], withAnswer({ approved: true })),
      choice('reject', ['Reject', 'reject_once'], withAnswer({ approved: false })),
    ]
  if (kind === 'question') return null
  const withDecision = (approved: boolean) => (): ChatAnswer => ({ callId, approved })
  const once = [
    choice('allow', ['Allow', 'allow_once'], withDecision(true)),
    choice('reject', ['Reject', 'reject_once'], withDecision(false)),
  ]
  if (remember === undefined) return once
  const withRememberedDecision = (approved: boolean) => async (): Promise<ChatAnswer> => {
    const kept = (await remember(item, { approved })) ?? undefined
    return approved && kept !== undefined ? { callId, approved, remember: kept } : { callId, approved }
  }
  return [
    choice('allow_always', ['Always allow', 'allow_always'], withRememberedDecision(true)),
    ...once,
    choice('reject_always', ['Always reject', 'reject_always'], withRememberedDecision(false)),
  ]
}

function choice(
  optionId: string,
  [name, kind]: readonly [string, PermissionOption['kind']],
  answer: Choice['answer'],
): Choice {
  return { option: { optionId, name, kind }, answer }
}

/** A call of a child run names its agent. */
function askedToolCall(item: PendingItem, { root, toolOf }: AskingMeans): ToolCallUpdate {
  const { callId, toolName, path } = item
  const { title, ...shown } = shownCall(toolName, item.arguments, { root, facts: toolOf(toolName) })
  const preview = questionPreview(item)
  const content = [...editDiffs(toolName, shown.rawInput, root), ...(preview === '' ? [] : [textContent(preview)])]
  return {
    toolCallId: callId,
    name: toolName,
    ...shown,
    status: 'pending',
    title: path.length > 1 ? oneLine(`Subagent: ${title}`) : title,
    ...(content.length > 0 && { content }),
  }
}

/** The preview of a call: a text, the text in it, or JSON. */
function questionPreview({ kind, payload, decision, toolName }: PendingItem): string {
  const reason = decision?.reason ?? null
  const lines: string[] = []
  if (kind === 'unknown_outcome') lines.push(`\`${toolName}\` was interrupted: it is unknown whether it took effect.`)
  if (reason !== null) lines.push(reason)
  if (isObject(payload) && typeof payload['plan'] === 'string') lines.push(payload['plan'])
  else if (isObject(payload) && typeof payload['reason'] === 'string') lines.push(payload['reason'])
  else if (typeof payload === 'string') lines.push(payload)
  else if (payload !== undefined && payload !== null) lines.push(JSON.stringify(payload, null, 2))
  return lines.join('\n\n')
}

/** A question with its options. */
function questionText({ toolName, payload }: PendingItem): string {
  if (typeof payload === 'string' && payload !== '') return payload
  const question = isObject(payload) ? payload['question'] : undefined
  if (!isObject(payload) || typeof question !== 'string')
    return payload === undefined || payload === null
      ? `\`${toolName}\` asks a question.`
      : `\`${toolName}\` asks:\n\n${JSON.stringify(payload, null, 2)}`
  const options = Array.isArray(payload['options']) ? payload['options'].filter(isObject) : []
  const lines = options.map(({ label, description }) =>
    typeof description === 'string' ? `- ${String(label)}: ${description}` : `- ${String(label)}`,
  )
  return [question, ...(lines.length > 0 ? ['', ...lines] : [])].join('\n')
}

/** A form for an answer. */
interface Form {
  readonly schema: ElicitationSchema
  readonly answerOf: (content: Readonly<Record<string, ElicitationContentValue>>) => JsonValue
}

/** Name of the only field, if the answer is one value. */
const ANSWER = 'answer'
const TYPES: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean'])
/** Formats that a form can have. */
const FORMATS: ReadonlySet<unknown> = new Set(['email', 'uri', 'date', 'date-time'])

/** The form for an answer to a question; null if the schema is no flat object and no single value, or asks for a secret. */
function questionForm({ payload, answerSchema }: Pick<PendingItem, 'payload' | 'answerSchema'>): Form | null {
  const several = choicesOfSeveral(payload)
  if (several !== null) return singleFieldForm({ type: 'array', items: { type: 'string', enum: several } })
  if (answerSchema === undefined) return null
  const field = formField(answerSchema)
  if (field !== null) return singleFieldForm(field)
  const { type, properties, required } = answerSchema as Readonly<Record<string, unknown>>
  if (type !== 'object' || !isObject(properties)) return null
  const fields: Record<string, ElicitationPropertySchema> = {}
  for (const [name, property] of Object.entries(properties)) {
    const shown = isObject(property) ? formField(property) : null
    if (shown === null) return null
    fields[name] = shown
  }
  const names = Array.isArray(required) ? required.filter((name) => typeof name === 'string') : []
  return {
    schema: { type: 'object', properties: fields, required: names },
    answerOf: (content) => content,
  }
}

function singleFieldForm(field: ElicitationPropertySchema): Form {
  return {
    schema: { type: 'object', properties: { [ANSWER]: field }, required: [ANSWER] },
    answerOf: (content) => content[ANSWER] ?? null,
  }
}

/** The labels of a question of `ask_user` that several can be chosen of. */
function choicesOfSeveral(payload: PendingItem['payload']): string[] | null {
  if (!isObject(payload) || payload['selection'] !== 'several' || !Array.isArray(payload['options'])) return null
  return payload['options'].flatMap((option) =>
    isObject(option) && typeof option['label'] === 'string' ? option['label'] : [],
  )
}

/** The field for one value; null for a value that is none, and for a secret. */
function formField(schema: JsonSchema | Readonly<Record<string, unknown>>): ElicitationPropertySchema | null {
  const { type, enum: choices, format, writeOnly, ...more } = schema as Readonly<Record<string, unknown>>
  if (format === 'password' || writeOnly === true) return null
  const texts = Array.isArray(choices) && choices.every((choice) => typeof choice === 'string') ? choices : null
  if (choices !== undefined && texts === null) return null
  const known = type ?? (texts === null ? undefined : 'string')
  if (!TYPES.has(known)) return null
  const kept = KEPT.flatMap((name) => (more[name] === undefined ? [] : [[name, more[name]]]))
  return {
    type: known as 'string',
    ...(Object.fromEntries(kept) as object),
    ...(texts !== null && { enum: texts }),
    ...(FORMATS.has(format) && { format: format as 'email' }),
  }
}

const KEPT = ['title', 'description', 'default', 'minLength', 'maxLength', 'pattern', 'minimum', 'maximum']
