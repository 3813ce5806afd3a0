import { invalidOptions } from '#contracts/parse.js'
import type { FinishReason, TokenUsage } from '#contracts/entry.js'
import type { JsonObject } from '#util/json.js'
import {
  anything,
  either,
  filledString,
  jsonObject,
  list,
  nullable,
  object,
  optional,
  parseAs,
  partial,
  string,
} from '#util/validate.js'
import type { Shape } from '#util/validate.js'
import type { ScriptMessage } from './script-request.js'

/** The answer of a scripted model in one turn. */
export interface ScriptedReply {
  /** The text in addition to its calls, or the whole answer. */
  readonly text?: string | undefined
  /** The reasoning, before everything else. Empty: only its encrypted form is shown. */
  readonly reasoning?: string | undefined
  readonly calls?: readonly ScriptedCall[] | undefined
  /** The explanation of a refusal. It is not part of the text. */
  readonly refusal?: string | undefined
  /** In place of `text`, `reasoning`, `calls` and `refusal`: the pieces of the reply in any order. */
  readonly parts?: readonly ReplyPart[] | undefined
  /** Default: `refusal` if there is one, else `tool_calls` if there are calls, else `stop`. */
  readonly finishReason?: FinishReason | undefined
  /** The provider's own word. Default: the word of the API for `finishReason`; of a model, the same word. */
  readonly nativeFinishReason?: string | undefined
  /** Tokens of the reply; the missing ones have their default. `null`: the provider does not report any. */
  readonly usage?: Partial<TokenUsage> | null | undefined
}

/** One tool call of a reply. */
export interface ScriptedCall {
  readonly name: string
  /** A string is sent unchanged, and may be invalid JSON. Default `{}`. */
  readonly arguments?: JsonObject | string | undefined
  /** Default: a new id in the conversation. `null`: over HTTP, none is sent. */
  readonly callId?: string | null | undefined
}

/** A piece of a reply. `block` is one that the API has and this library does not know: over HTTP it is sent unchanged. */
export type ReplyPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  | { readonly type: 'refusal'; readonly text: string }
  | ({ readonly type: 'call' } & ScriptedCall)
  | { readonly type: 'block'; readonly data: JsonObject }

/** A reply with all defaults except the ids of its calls. */
export interface ResolvedReply {
  readonly parts: readonly ResolvedPart<string | null | undefined>[]
  readonly finishReason: FinishReason
  readonly nativeFinishReason: string | undefined
  readonly usage: Partial<TokenUsage> | null
}

/** A part with raw arguments. The id of a call is null if none is sent. */
export type ResolvedPart<Id> =
  | Exclude<ReplyPart, { readonly type: 'call' }>
  | { readonly type: 'call'; readonly name: string; readonly arguments: string; readonly callId: Id }

const CALL = object<ScriptedCall>({
  name: filledString,
  arguments: optional(either(string, jsonObject)),
  callId: optional(nullable(string)),
})

const REPLY = partial<ScriptedReply>({
  text: string,
  reasoning: string,
  calls: list(CALL),
  refusal: string,
  parts: list(anything()),
  finishReason: anything(),
  nativeFinishReason: string,
  usage: anything(),
})

/** Applies the defaults of a reply. Throws `invalid_options`, also for the `undefined` of a function without a return. */
export function resolveReply(given: ScriptedReply | string): ResolvedReply {
  const reply = readShape(REPLY, typeof given === 'string' ? { text: given } : given, 'a reply')
  const parts = (reply.parts ?? replyParts(reply)).map(resolvePart)
  const { finishReason = defaultFinishReason(parts), nativeFinishReason, usage = {} } = reply
  return { parts, finishReason, nativeFinishReason, usage }
}

function readShape<T>(shape: Shape<T>, given: unknown, name: string): T {
  const parsed = parseAs(shape, given, name)
  if (!parsed.ok) throw invalidOptions(parsed.problem)
  return parsed.value
}

function defaultFinishReason(parts: ResolvedReply['parts']): FinishReason {
  if (parts.some((part) => part.type === 'refusal')) return 'refusal'
  return parts.some((part) => part.type === 'call') ? 'tool_calls' : 'stop'
}

function replyParts({ text, reasoning, refusal, calls = [] }: ScriptedReply): ReplyPart[] {
  return [
    ...(reasoning === undefined ? [] : [{ type: 'reasoning', text: reasoning } as const]),
    ...(text === undefined ? [] : [{ type: 'text', text } as const]),
    ...(refusal === undefined ? [] : [{ type: 'refusal', text: refusal } as const]),
    ...calls.map((call) => ({ type: 'call', ...call }) as const),
  ]
}

function resolvePart(part: ReplyPart): ResolvedReply['parts'][number] {
  if (part.type !== 'call') return part
  const { type, ...call } = part
  const { name, arguments: args = {}, callId } = readShape(CALL, call, 'a call')
  return { type, name, arguments: typeof args === 'string' ? args : JSON.stringify(args), callId }
}

/**
 * Gives each call without an id one that is unique in the conversation. `form` makes an id of the number of the call,
 * counted from 1 through the conversation.
 */
export function withCallIds(
  parts: ResolvedReply['parts'],
  messages: readonly ScriptMessage[],
  form: (ordinal: number) => string,
): readonly ResolvedPart<string | null>[] {
  const earlier = messages.flatMap((message) => (message.role === 'assistant' ? message.calls : []))
  const taken = new Set<string | null | undefined>(earlier.map((call) => call.callId))
  for (const part of parts) if (part.type === 'call') taken.add(part.callId)
  let ordinal = earlier.length
  return parts.map((part) => {
    if (part.type !== 'call') return part
    if (part.callId !== undefined) return { ...part, callId: part.callId }
    let callId = form(++ordinal)
    while (taken.has(callId)) callId = form(++ordinal)
    return { ...part, callId }
  })
}

/** Cut like a model's tokens: at words, and after 12 characters. Never inside a surrogate pair. */
const PIECE = /\s*\S{1,12}|\s+/gu

/** A text in the pieces in which it is streamed; joined they are the text. */
export function textPieces(text: string): readonly string[] {
  return text.match(PIECE) ?? []
}
