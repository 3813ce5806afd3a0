import type { Attempt, Candidate, ModelRun, RequestWait, SubmittedRequest } from '#contracts/attempt.js'
import type { Decided, Question } from '#contracts/decision.js'
import type { ModelRef } from '#contracts/model-reference.js'
import type { ProviderFailure } from '#contracts/provider-failure.js'
import type { TranscriptRepair } from '#contracts/mend.js'
import type { AssistantEntry, NativePart, TokenUsage, TranscriptEntry, Unstamped } from '#contracts/entry.js'
import type { JsonObject, JsonSchema, JsonValue } from '#util/json.js'

/** A model that can be asked, by any number of runs at once. It holds no conversation. */
export interface Model {
  /** Name of the provider, such as `openai`, for events, entries and traces. */
  readonly provider: string
  /** The provider's name of the model, such as `gpt-5.5`. */
  readonly id: string
  readonly capabilities: ModelCapabilities
  /**
   * The model is a program: its turns are computed, not requested. They cost nothing, are under no limit of requests and have no
   * span of a request; a run takes at most 10,000 of them (`usage.scriptSteps`). Default: it is asked for each turn.
   */
  readonly computed?: true | undefined
  /** Bytes that a request may have. Default: unknown. */
  readonly requestBytes?: number | undefined
  /**
   * The models that may answer in its place, in order, of a model that is made of others. All need a known price where money is
   * limited. Default: itself only.
   */
  readonly candidates?: readonly Pick<Model, 'provider' | 'id' | 'capabilities'>[] | undefined
  /**
   * Every request to a provider is an attempt that the model begins by `TurnOptions.attempt`: nothing is reserved for a request as a
   * whole, so that one which waits holds no money. Default: it is reserved.
   */
  readonly reserves?: true | undefined
  /** A fresh session, for one run if it is named. Must do no I/O. */
  openSession(run?: ModelRun): ModelSession
  /**
   * Tokens that a request would have, by the provider's own counter, which costs nothing. Absent if the API has none; rejects
   * with a `HarnessError` if the server has none, or cannot be reached. Default: none.
   */
  readonly countTokens?:
    | ((
        view: readonly TranscriptEntry[],
        constants: RequestConstants,
        options: { readonly signal: AbortSignal },
      ) => Promise<number>)
    | undefined
  /**
   * Has the provider write a conversation in a shorter form that only this provider reads. `view` ends with a whole step. Absent
   * if the API cannot; rejects with a `HarnessError` if the server cannot, or with the reason of `signal`. Default: none.
   */
  readonly compact?:
    | ((
        view: readonly TranscriptEntry[],
        constants: RequestConstants,
        options: Pick<TurnOptions, 'signal' | 'maxOutputTokens' | 'attempt'>,
      ) => Promise<Compaction>)
    | undefined
  /** Throws if no request can be made, such as without a key (`missing_key`). Sends nothing. Default: not checked. */
  check?(): void
  /** Opens a connection that the next request takes, and sends no request over it. Default: the request opens one itself. */
  connect?(): Promise<void>
  /** Gives back connections. Called by the harness for the models that it made itself from a reference. */
  close?(): Promise<void>
}

/** A conversation in a provider's own, shorter form. */
export interface Compaction {
  /** Replayed unchanged to the same provider, first in its conversation. */
  readonly native: NativePart
  /** The part of it that people and other models can read; empty if there is none. */
  readonly text: string
  readonly usage: TokenUsage
}

/** The memory of an adapter within one run: the entries it has encoded, the chain's last response. Never the conversation. */
export interface ModelSession {
  /**
   * Requests the next turn. `view` is the transcript as the model sees it: under one `options.generation` it only grows, and
   * encoded entries are not encoded again. Rejects with a `HarnessError` of code `provider_error`, or with the reason of
   * `options.signal`.
   */
  turn(view: readonly TranscriptEntry[], constants: RequestConstants, options: TurnOptions): Promise<ModelTurn>
  /** Gives back what the session holds, such as a connection, when its run has ended or waits for people. Must not throw. Default: it holds nothing. */
  close?(): void
}

/** The parts that all requests of a run share; frozen when the run starts, so that a provider can cache the prefix. */
export interface RequestConstants {
  /** The system prompt; may be empty. */
  readonly instructions: string
  readonly tools: readonly ToolDefinition[]
  /** Set when the reply must be JSON of a schema, enforced by the provider. */
  readonly structuredOutput: StructuredOutputRequest | null
  readonly settings: ModelSettings
}

/** A tool as the model sees it. */
export interface ToolDefinition {
  readonly name: string
  readonly description: string
  readonly parameters: JsonSchema
  /** Found by the provider's own search, which is to be offered too: only for a model with `capabilities.toolSearch`. */
  readonly deferred?: boolean | undefined
  /** See `ToolSpec.strict`. */
  readonly strict?: boolean | undefined
  /** See `ToolSpec.examples`. */
  readonly examples?: readonly JsonObject[] | undefined
  /** The provider executes it. A model that has no such tool refuses it with `invalid_options`. Default: the harness does. */
  readonly hosted?: HostedTool | undefined
}

/** A tool that the provider executes within its reply. */
export interface HostedTool extends JsonObject {
  /** `connector`: the tools of a server that the provider connects to. */
  readonly kind: 'web_search' | 'web_fetch' | 'code_execution' | 'file_search' | 'image_generation' | 'connector'
  /** Its options in a form that all providers share, without secrets. `maxUses`: calls in one reply, for which money is reserved. */
  readonly config: JsonObject
}

export interface StructuredOutputRequest {
  readonly name: string
  readonly schema: JsonSchema
  /** True if the provider's strict mode can take the schema. */
  readonly strict: boolean
  readonly description?: string
}

/** Portable settings. They win over the defaults that a model was made with (`openai(id, { temperature })`). */
export interface ModelSettings {
  /** Cap of one reply, in tokens. Default: the adapter's (16,384 if the provider requires one). */
  readonly maxOutputTokens?: number | undefined
  /** Sent only when set. */
  readonly temperature?: number | undefined
  /** How much a reasoning model should think. Refused for a model that cannot. Default: the provider's. */
  readonly reasoningEffort?: ReasoningEffort | undefined
  /** Default `auto`. */
  readonly toolChoice?: ToolChoice | undefined
  /** Fields merged into the request body, by provider name; objects are merged deeply, other values replaced. */
  readonly providerOptions?: Readonly<Record<string, JsonObject>> | undefined
}

export type ReasoningEffort = 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max'

/** True if the model may, must not or must call tools, or must call this one. */
export type ToolChoice = 'auto' | 'none' | 'required' | { readonly tool: string }

/** How a final answer of a schema is asked for. */
export type StructuredOutputMode = 'native' | 'tool' | 'prompted' | 'text'

/** The capabilities of a model. A field that is left out has the default that its line names. */
export interface ModelCapabilities {
  /** The provider enforces a JSON Schema on the reply. Default false. */
  readonly supportsJsonSchemaOutput?: boolean | undefined
  /** Default true. */
  readonly supportsTools?: boolean | undefined
  /**
   * Which schemas the provider can enforce: any that its API takes (`any`, the default), or only those without recursion,
   * maps and open objects (`closed`). For others mode `auto` is not `native`, and `native` is refused.
   */
  readonly nativeSchemas?: 'any' | 'closed' | undefined
  /** Mode `native` may be asked for although `supportsJsonSchemaOutput` is false; a refusal is the provider's. Default false. */
  readonly permissiveNativeOverride?: boolean | undefined
  /** Default `tool`. */
  readonly defaultStructuredOutputMode?: StructuredOutputMode | undefined
  /** Efforts that the model accepts; empty: it is no reasoning model. Default: unknown, anything is passed on. */
  readonly reasoningEfforts?: readonly ReasoningEffort[] | undefined
  /** Kinds of input in addition to text. Default: unknown, anything is passed on. */
  readonly inputs?: readonly ('image' | 'file' | 'audio')[] | undefined
  /** The hosted tools that it has. Default: unknown, a request with another one is refused by the model itself. */
  readonly hostedTools?: readonly HostedTool['kind'][] | undefined
  /** Cap of one reply, in tokens, unless the settings name one. Default: unknown. */
  readonly maxOutputTokens?: number | undefined
  /** Tokens of input and output together. Default: that of the table of prices, if it has the model; otherwise unknown. */
  readonly contextTokens?: number | undefined
  /** Bytes that a request may have. Default: the API's own limit, if it is known. */
  readonly requestBytes?: number | undefined
  /**
   * The provider has a search for deferred tools, which keeps their whole definitions out of the prompt (`definitions`), or only what
   * they say about arguments (`parameters`). Default `none`.
   */
  readonly toolSearch?: 'definitions' | 'parameters' | 'none' | undefined
  /** True if prompts may be cached for an hour, for which a provider can charge more. Default: unknown, counted as true. */
  readonly longCacheWrites?: boolean | undefined
}

export interface TurnOptions {
  readonly signal: AbortSignal
  /** Number of the reply in the run, from 1. Absent outside a run. */
  readonly turn?: number
  /** How often a failed request may be repeated, in place of the model's own number; 0: not at all. */
  readonly retries?: number
  /** The longest wait for the first byte of the answer, and between two pieces of it, in ms. Default: the model's own. */
  readonly idleMs?: number
  /** Number of the view. Under one number it only grows; under another one, earlier entries may differ. */
  readonly generation: number
  /** If set, the request is streamed, and each piece is passed on once, in order. Must not throw. */
  readonly onDelta?: (delta: ModelDelta) => void
  /** Called before the turn rejects because of `signal`, with the usage that the provider has reported of the reply so far. */
  readonly onUsage?: (usage: TokenUsage) => void
  /**
   * Begins an attempt at the request, before it is sent: what it may cost is reserved at the price of this model. Rejects with
   * `limit_reached` if that could pass a limit. For a model that never calls it, the request as a whole is one attempt.
   */
  readonly attempt?: (candidate: Candidate) => Promise<Attempt>
  /** Tells the readers of the run that the request waits, such as for its turn. */
  readonly waiting?: (wait: RequestWait) => void
  /** Tells the readers of the run what went otherwise than asked, as an event `warning`. */
  readonly warn?: (message: string) => void
  /** Gets the headers of each answer of the provider, names in lower case, also of a refusal. Default: nobody reads them. */
  readonly onHeaders?: (headers: Readonly<Record<string, string>>) => void
  /** Stores that the provider has accepted the request under this id: a process may end, and another one get the answer. */
  readonly submitted?: (id: string) => Promise<void>
  /** The request was submitted by an earlier process: its answer is to be fetched. Given once. */
  readonly resume?: SubmittedRequest
  /** Called before each repetition of a request. */
  readonly onRetry?: (retry: TransportRetry) => void
  /** For this turn only, in place of `settings.toolChoice`. */
  readonly toolChoice?: ToolChoice
  /** For this turn only, in place of `settings.maxOutputTokens`: never more than that, or than the model's own cap. */
  readonly maxOutputTokens?: number
  /** Something in the request before its new entries differs from the last request, so the provider's cache is lost. */
  readonly onCacheBust?: (bust: CacheBust) => void
  /**
   * The results of the calls of the run that have succeeded, by call id: whole and frozen, as JSON, also after a crash or a pause.
   * For a model that is `computed` only.
   */
  readonly values?: ReadonlyMap<string, JsonValue>
  /** Broken history was mended for the provider; the transcript itself is unchanged. */
  readonly onRepair?: (repair: TranscriptRepair) => void
}

/** A piece of a reply as it arrives. `callId` and `toolName` say which call a `tool_input_delta` belongs to. */
export interface ModelDelta {
  readonly kind: 'text_delta' | 'reasoning_delta' | 'tool_input_delta'
  readonly text: string
  readonly callId?: string
  /** Absent until the provider has sent it. */
  readonly toolName?: string
}

export interface TransportRetry {
  /** The attempt that failed, counted from 1. */
  readonly attempt: number
  /** Wait before the next attempt, in ms. */
  readonly delayMs: number
  /** The problem, as a sentence. */
  readonly reason: string
  readonly status: number | null
  /** Why the provider gave no answer, if it is known. */
  readonly failure?: ProviderFailure
  /** Deltas of the failed attempt were emitted and are withdrawn; the next attempt starts over. */
  readonly withdrawn: boolean
}

export interface CacheBust {
  /** JSON path of the first difference in the request, such as `$.messages[3].content[0].text`. */
  readonly path: string
  /** `entry_changed`, `constants_changed` or `model_changed`. */
  readonly cause: string
}

/** A complete reply. Its text, calls, finish reason and usage are those of `entry`. */
export interface ModelTurn {
  /** The run replaces `id` and `at`. */
  readonly entry: Unstamped<AssistantEntry>
  /** The reply comes from a cache of replies: nobody was asked. Default false. */
  readonly cached?: boolean
  /** The provider's own finish reason. Default: null, the provider gave none. */
  readonly nativeFinishReason?: string | null
  /** The explanation of a refusal, if the provider gave one. It is not part of the text. */
  readonly refusal?: string
  /** Default null. */
  readonly responseId?: string | null
  /** The model that answered, as the provider names it. Default null. */
  readonly responseModel?: string | null
  /** The provider's unchanged reply; of a stream, the reply that it adds up to. Kept in `result.responses`, never in an event. */
  readonly raw?: unknown
}

export interface ModelToolCall {
  readonly callId: string
  readonly name: string
  /** Raw JSON text. */
  readonly arguments: string
}

/**
 * Has a model choose between a few answers. Paid for within the limits of the run, and stored as `aside`. Rejects with
 * `limit_reached` if it could pass a limit, and if the model gives none of the choices.
 */
export type Decide = <const Choice extends string>(
  question: Question<Choice, ModelRef | Model>,
) => Promise<Decided<Choice>>
