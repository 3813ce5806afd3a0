import { NO_TOKENS, UNREPORTED_USAGE } from '#contracts/entry.js'
import { HarnessError } from '#contracts/errors.js'
import type { AssistantPart, TokenUsage, TranscriptEntry } from '#contracts/entry.js'
import type {
  Model,
  ModelCapabilities,
  ModelDelta,
  ModelSession,
  ModelTurn,
  RequestConstants,
  ToolChoice,
  TurnOptions,
} from '#core/model-session.js'
import { abortable } from '#util/abort.js'
import { scriptMessage, scriptRequest } from './script-request.js'
import type { Heard, ScriptRequest } from './script-request.js'
import { textPieces, resolveReply, withCallIds } from './reply.js'
import type { ResolvedPart, ResolvedReply } from './reply.js'
import { isFault, Script } from './scripted-replies.js'

export interface ScriptedModelOptions {
  /** Default `scripted`. */
  readonly provider?: string | undefined
  /** Default `scripted-1`. */
  readonly id?: string | undefined
  /** Default: none stated. */
  readonly capabilities?: ModelCapabilities | undefined
}

/** A request as a function of the script sees it. */
export interface ModelRequest extends ScriptRequest {
  readonly transcript: readonly TranscriptEntry[]
  readonly constants: RequestConstants
  /** Of the session: a function may emit deltas and report retries, or read the signal. */
  readonly options: TurnOptions
}

/** A request, recorded for assertions. */
export interface HeardRequest {
  readonly heard: Heard
  /** The new entries: those after the last reply. */
  readonly entries: readonly TranscriptEntry[]
  readonly transcriptLength: number
  readonly constants: RequestConstants
  /** The choice for this request alone. */
  readonly toolChoice: ToolChoice | undefined
  /** Somebody listened for deltas. */
  readonly streamed: boolean
}

/** The request fails with this error. */
export interface ModelFailure {
  readonly fault: 'error'
  readonly error: unknown
}

/** The default usage of a reply. */
const USAGE: TokenUsage = { ...NO_TOKENS, inputTokens: 10, outputTokens: 5 }

/**
 * A model that follows a script, for tests: no network, no API key, no randomness.
 *
 * ```ts
 * using model = new ScriptedModel().calls('read', { path: 'a.txt' }).says('Done.')
 * const result = await new Harness({ model, root }).run('Look into a.txt.')
 * ```
 *
 * One script is followed by all sessions of the model together, line by line; `ScriptedModel.each` gives each session its
 * own. A request without a line fails the run; a line without a request fails `assertDone()`, which the end of a `using`
 * block calls. A reply costs 10 input and 5 output tokens unless it says otherwise. Its calls are `call_1`, `call_2` and so
 * on, counted through the conversation. Deltas are emitted word by word if there is a listener.
 */
export class ScriptedModel extends Script<ModelRequest, ModelFailure> implements Model {
  readonly provider: string
  readonly id: string
  readonly capabilities: ModelCapabilities
  /** The new messages of each request. */
  readonly heard: Heard[] = []
  /** The requests with all details. */
  readonly requests: HeardRequest[] = []
  protected readonly title: string
  #scripts: ((request: ModelRequest) => ScriptedModel) | null = null
  readonly #opened: ScriptedModel[] = []

  constructor({ provider = 'scripted', id = 'scripted-1', capabilities = {} }: ScriptedModelOptions = {}) {
    super()
    this.provider = provider
    this.id = id
    this.capabilities = capabilities
    this.title = `\`${provider}:${id}\``
  }

  /**
   * A model whose sessions each follow a script of their own, for concurrent runs. `makeScript` is called with the
   * session's first request, so that it can choose by the prompt.
   */
  static each(makeScript: (first: ModelRequest) => ScriptedModel, options: ScriptedModelOptions = {}): ScriptedModel {
    const model = new ScriptedModel(options)
    model.#scripts = makeScript
    return model
  }

  /** The request fails: with this error, or with a `HarnessError` of code `provider_error` and this message. */
  fails(error: Error | string): this {
    const thrown = typeof error === 'string' ? new HarnessError('provider_error', error) : error
    return this.add(`fails with ${JSON.stringify(thrown.message)}`, { fault: 'error', error: thrown })
  }

  protected override wantsAnswer(request: ModelRequest): boolean {
    return request.constants.structuredOutput !== null || super.wantsAnswer(request)
  }

  override assertDone(): void {
    super.assertDone()
    for (const script of this.#opened) script.assertDone()
  }

  openSession(): ModelSession {
    let script: ScriptedModel | null = null
    return {
      turn: async (transcript, constants, options) => {
        options.signal.throwIfAborted()
        const request = modelRequest(transcript, constants, options)
        this.#hear(request)
        script ??= this.#open(request)
        const answer = await abortable(script.answer(request), options.signal)
        if (isFault(answer)) throw answer.error
        const turn = this.#toTurn(resolveReply(answer), request)
        emitDeltas(turn, options)
        return turn
      },
    }
  }

  #open(request: ModelRequest): ScriptedModel {
    if (this.#scripts === null) return this
    const script = this.#scripts(request)
    this.#opened.push(script)
    return script
  }

  #hear({ heard, transcript, constants, options }: ModelRequest): void {
    this.heard.push(heard)
    this.requests.push({
      heard,
      entries: transcript.slice(transcript.findLastIndex((entry) => entry.role === 'assistant') + 1),
      transcriptLength: transcript.length,
      constants,
      toolChoice: options.toolChoice,
      streamed: options.onDelta !== undefined,
    })
  }

  #toTurn(reply: ResolvedReply, { messages, turn }: ModelRequest): ModelTurn {
    const { provider, id } = this
    const { finishReason, nativeFinishReason = finishReason } = reply
    const given = reply.parts.map((part) =>
      part.type === 'call' && part.callId === null ? { ...part, callId: undefined } : part,
    )
    const numbered = withCallIds(given, messages, (ordinal) => `call_${ordinal}`)
    const parts = numbered.map((part) => assistantPart(part, provider))
    const usage = reply.usage === null ? UNREPORTED_USAGE : { ...USAGE, ...reply.usage }
    const refusal = reply.parts.map((part) => (part.type === 'refusal' ? part.text : '')).join('')
    return {
      entry: { role: 'assistant', parts, provider, model: id, finishReason, usage },
      nativeFinishReason,
      ...(refusal !== '' && { refusal }),
      responseId: `response_${turn + 1}`,
      responseModel: id,
      raw: reply,
    }
  }
}

function modelRequest(
  transcript: readonly TranscriptEntry[],
  constants: RequestConstants,
  options: TurnOptions,
): ModelRequest {
  const tools = constants.tools.map((tool) => tool.name)
  const request = scriptRequest(
    transcript.map((entry) => scriptMessage(entry)),
    constants.instructions,
    tools,
  )
  return { ...request, transcript, constants, options }
}

function assistantPart(part: ResolvedPart<string | null>, provider: string): AssistantPart {
  switch (part.type) {
    case 'text':
    case 'reasoning':
      return part
    case 'refusal':
      return { type: 'opaque', native: { provider, data: { type: 'refusal', refusal: part.text } } }
    case 'block':
      return { type: 'opaque', native: { provider, data: part.data } }
    case 'call':
      return { type: 'tool_call', callId: part.callId ?? '', name: part.name, arguments: part.arguments }
  }
}

function emitDeltas({ entry }: ModelTurn, { onDelta, signal }: TurnOptions): void {
  if (onDelta === undefined) return
  for (const part of entry.parts) {
    for (const delta of partDeltas(part)) {
      signal.throwIfAborted()
      onDelta(delta)
    }
  }
  signal.throwIfAborted()
}

function partDeltas(part: AssistantPart): readonly ModelDelta[] {
  switch (part.type) {
    case 'text':
      return textPieces(part.text).map((text) => ({ kind: 'text_delta', text }))
    case 'reasoning':
      return textPieces(part.text).map((text) => ({ kind: 'reasoning_delta', text }))
    case 'tool_call':
      return textPieces(part.arguments).map((text) => ({
        kind: 'tool_input_delta',
        text,
        callId: part.callId,
        toolName: part.name,
      }))
    case 'hosted':
    case 'image':
    case 'opaque':
      return []
  }
}
