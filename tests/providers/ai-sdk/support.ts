import { HarnessError } from 'thinharness'
import type { Model, ModelDelta, ModelSession, ModelTurn, RequestConstants, TurnOptions } from 'thinharness'
import { encodeEntries } from '#providers/ai-sdk/messages.js'
import type { EncodeRules } from '#providers/ai-sdk/messages.js'
import { fromAiSdk } from '#providers/ai-sdk/index.js'
import type { AiSdkLanguageModel, AiSdkOptions } from '#providers/ai-sdk/index.js'
import { traitsOf } from '#providers/ai-sdk/provider-traits.js'
import { VERSIONS } from '#providers/ai-sdk/language-model.js'
import type {
  AssistantEntry,
  AssistantPart,
  ContentPart,
  ToolEntry,
  TranscriptEntry,
  UserEntry,
} from '#contracts/entry.js'
import { UNREPORTED_USAGE } from '#contracts/entry.js'
import type { JsonObject } from '#util/json.js'

const AT = '2026-01-01T00:00:00.000Z'
export const NO_CONSTANTS: RequestConstants = { instructions: '', tools: [], structuredOutput: null, settings: {} }
export const LOOKUP = { name: 'lookup', description: 'Looks it up.', parameters: { type: 'object', properties: {} } }

export type VersionName = 'v2' | 'v3' | 'v4'
export const VERSION_NAMES: readonly VersionName[] = ['v2', 'v3', 'v4']

export function user(content: string | readonly ContentPart[], notice = false): UserEntry {
  const parts = typeof content === 'string' ? [{ type: 'text', text: content } as const] : content
  return { role: 'user', id: 'e', at: AT, content: parts, ...(notice && { notice: true }) }
}

export function assistant(...parts: readonly AssistantPart[]): AssistantEntry {
  const told = { provider: 'p', model: 'm', finishReason: 'stop', usage: UNREPORTED_USAGE } as const
  return { role: 'assistant', id: 'e', at: AT, parts, ...told }
}

export function call(callId: string, text = '{}'): AssistantPart {
  return { type: 'tool_call', callId, name: 'lookup', arguments: text }
}

export function result(callId: string, content: ToolEntry['content'] = '{"ok":true}', isError = false): ToolEntry {
  return { role: 'tool', id: 'e', at: AT, callId, name: 'lookup', content, isError }
}

/** The name of an AI SDK provider in entries. */
const named = (provider: string): string => `ai-sdk:${provider}`

export function own(provider: string, data: JsonObject): { native: { provider: string; data: JsonObject } } {
  return { native: { provider: named(provider), data } }
}

/** The messages of entries for a provider of the AI SDK, whose name determines its traits. */
export function encoded(
  entries: readonly TranscriptEntry[],
  provider = 'acme.chat',
  version: VersionName = 'v3',
  inputs?: EncodeRules['inputs'],
): JsonObject[] {
  const rules = { provider: named(provider), version: VERSIONS.get(version)!, traits: traitsOf(provider), inputs }
  return encodeEntries(entries, rules)
}

/** The options of a call, without its signal. */
type Call = Readonly<Record<string, unknown>>

type Rule = (call: Call, signal: AbortSignal) => object | Promise<object>
type Answer = object | Error | Rule

/** A language model that gives these answers, each a whole reply, or the list of a stream's parts. */
export class FakeLanguageModel implements AiSdkLanguageModel {
  readonly specificationVersion: string
  readonly provider: string
  readonly modelId = 'm'
  readonly calls: Call[] = []
  /** Streams that were given back before their end. */
  cancelled = 0
  readonly #answers: Answer[]

  constructor(answers: readonly Answer[], { version = 'v3', provider = 'acme.chat' } = {}) {
    this.#answers = [...answers]
    this.specificationVersion = version
    this.provider = provider
  }

  async doGenerate(options: never): Promise<object> {
    return await this.#next(options)
  }

  async doStream(options: never): Promise<object> {
    const answer = await this.#next(options)
    // A whole reply in place of a stream: its end is all that the model sends.
    const parts: unknown[] = Array.isArray(answer) ? [...(answer as readonly unknown[])] : [finished()]
    const stream = new ReadableStream<unknown>({
      pull: (controller) => {
        if (parts.length === 0) return controller.close()
        const part = parts.shift()
        if (part instanceof Error) return controller.error(part)
        // A promise that never resolves keeps the stream open.
        if (part instanceof Promise) return part as Promise<void>
        controller.enqueue(part)
      },
      cancel: () => {
        this.cancelled++
      },
    })
    return { stream }
  }

  #next(options: Call & { readonly abortSignal: AbortSignal }): object | Promise<object> {
    const { abortSignal, ...call } = options
    this.calls.push(call)
    const answer = this.#answers.shift()
    if (answer === undefined) throw new Error('The script has run out.')
    if (answer instanceof Error) throw answer
    return typeof answer === 'function' ? (answer as Rule)(call, abortSignal) : answer
  }
}

/** A whole reply in the form of a version. */
export function reply(content: readonly object[], finish: object | string = { unified: 'stop', raw: 'end' }): object {
  return { content, finishReason: finish, usage: {}, warnings: [] }
}

export const text = (words: string): object => ({ type: 'text', text: words })
export const finished = (finishReason: unknown = { unified: 'stop', raw: 'end' }, usage: unknown = {}): object => {
  return { type: 'finish', finishReason, usage }
}

/** A conversation with a model: each `say` adds entries, asks, and adds the answer. */
export class Conversation {
  transcript: readonly TranscriptEntry[]
  readonly deltas: ModelDelta[] = []
  readonly #session: ModelSession
  readonly #constants: RequestConstants

  constructor(model: Model, constants: Partial<RequestConstants> = {}, transcript: readonly TranscriptEntry[] = []) {
    this.transcript = transcript
    this.#session = model.openSession()
    this.#constants = { ...NO_CONSTANTS, ...constants }
  }

  async say(entries: string | readonly TranscriptEntry[], options: Partial<TurnOptions> = {}): Promise<ModelTurn> {
    const added = typeof entries === 'string' ? [user(entries)] : entries
    this.transcript = [...this.transcript, ...added]
    const turn = await this.#session.turn(this.transcript, this.#constants, {
      generation: 0,
      signal: unaborted(),
      ...options,
    })
    this.transcript = [...this.transcript, { ...turn.entry, id: 'e', at: AT }]
    return turn
  }

  /** The same, with somebody who listens. */
  async hear(entries: string | readonly TranscriptEntry[], options: Partial<TurnOptions> = {}): Promise<ModelTurn> {
    return await this.say(entries, { onDelta: (delta) => void this.deltas.push(delta), ...options })
  }
}

export const unaborted = (): AbortSignal => new AbortController().signal

/** The reply to `Hi` of a model with these answers. */
export async function turnOf(
  answer: Answer,
  {
    version = 'v3',
    provider = 'acme.chat',
    streamed = false,
    options = {},
  }: { version?: VersionName; provider?: string; streamed?: boolean; options?: AiSdkOptions } = {},
): Promise<{ turn: ModelTurn; deltas: readonly ModelDelta[]; model: FakeLanguageModel }> {
  const model = new FakeLanguageModel([answer], { version, provider })
  const conversation = new Conversation(fromAiSdk(model, { maxRetries: 0, ...options }))
  const turn = await (streamed ? conversation.hear('Hi') : conversation.say('Hi'))
  return { turn, deltas: conversation.deltas, model }
}

/** The error of `work`, which must be a `HarnessError`. */
export async function errorOf(work: (() => unknown) | Promise<unknown>): Promise<HarnessError> {
  try {
    await (typeof work === 'function' ? work() : work)
  } catch (error) {
    if (error instanceof HarnessError) return error
    throw error
  }
  throw new Error('It did not fail.')
}
