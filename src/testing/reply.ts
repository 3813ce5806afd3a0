import { inspect } from 'node:util'
import { HarnessError } from '../index.js'
import type { FinishReason, JsonObject, TokenUsage } from '../index.js'
import { isObject } from './json.js'

/** What a scripted model answers in one turn. */
export interface Reply {
  /** What it says beside its calls, or its whole answer. */
  readonly text?: string
  /** What it thought, before everything else. Empty: it thought, and shows only an encrypted form. */
  readonly reasoning?: string
  readonly calls?: readonly ScriptedCall[]
  /** The words of a refusal, which are no text of the reply. */
  readonly refusal?: string
  /** In place of `text`, `reasoning`, `calls` and `refusal`: the pieces of the reply in an order of their own. */
  readonly parts?: readonly ReplyPart[]
  /** Default: `refusal` where there is one, else `tool_calls` where there are calls, else `stop`. */
  readonly finishReason?: FinishReason
  /** The provider's own word. Default: the one that the API has for `finishReason`; of a model, the same word. */
  readonly nativeFinishReason?: string
  /** What the reply cost, in tokens; the rest has its default. `null`: the provider does not say. */
  readonly usage?: Partial<TokenUsage> | null
}

/** One tool call of a reply. */
export interface ScriptedCall {
  readonly name: string
  /** An object; a string is sent as it is, so that it need not be JSON. Default `{}`. */
  readonly arguments?: JsonObject | string
  /** Default: one that is new in the conversation. `null`: over HTTP, none is sent. */
  readonly callId?: string | null
}

/** A piece of a reply. `block` is one that the API has and this library does not know: over HTTP it is sent as it is. */
export type ReplyPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  | { readonly type: 'refusal'; readonly text: string }
  | ({ readonly type: 'call' } & ScriptedCall)
  | { readonly type: 'block'; readonly data: JsonObject }

/** A reply with nothing left open but the ids. */
export interface ResolvedReply {
  readonly parts: readonly ResolvedPart[]
  readonly finishReason: FinishReason
  readonly nativeFinishReason: string | undefined
  readonly usage: Partial<TokenUsage> | null
}

export type ResolvedPart =
  | Exclude<ReplyPart, { readonly type: 'call' }>
  | {
      readonly type: 'call'
      readonly name: string
      /** Raw text. */
      readonly arguments: string
      readonly callId: string | null | undefined
    }

const TEXTS = ['text', 'reasoning', 'refusal']
const LISTS = ['calls', 'parts']
const FIELDS = [...TEXTS, ...LISTS, 'finishReason', 'nativeFinishReason', 'usage']

/**
 * Makes a reply whole. A string is a reply of that text. Throws a `HarnessError` of code `invalid_options` for what is
 * no reply, such as the `undefined` of a function that forgot to return one.
 */
export function resolveReply(reply: Reply | string): ResolvedReply {
  if (typeof reply === 'string') return resolveReply({ text: reply })
  checkReply(reply)
  const parts = (reply.parts ?? sugared(reply)).map(resolvePart)
  const finishReason = reply.finishReason ?? finishOf(parts)
  const usage = reply.usage === undefined ? {} : reply.usage
  return { parts, finishReason, nativeFinishReason: reply.nativeFinishReason, usage }
}

function finishOf(parts: readonly ResolvedPart[]): FinishReason {
  if (parts.some((part) => part.type === 'refusal')) return 'refusal'
  return parts.some((part) => part.type === 'call') ? 'tool_calls' : 'stop'
}

function sugared({ text, reasoning, refusal, calls = [] }: Reply): ReplyPart[] {
  return [
    ...(reasoning === undefined ? [] : [{ type: 'reasoning', text: reasoning } as const]),
    ...(text === undefined ? [] : [{ type: 'text', text } as const]),
    ...(refusal === undefined ? [] : [{ type: 'refusal', text: refusal } as const]),
    ...calls.map((call) => ({ type: 'call', ...call }) as const),
  ]
}

function resolvePart(part: ReplyPart): ResolvedPart {
  if (part.type !== 'call') return part
  const { name, arguments: given = {}, callId } = part
  if (typeof name !== 'string' || name === '') throw misuse('the `name` of a call to be a text', name)
  return { type: 'call', name, arguments: typeof given === 'string' ? given : JSON.stringify(given), callId }
}

function checkReply(reply: unknown): void {
  if (!isObject(reply)) throw misuse('a reply (a text, or an object such as `{ text, calls }`)', reply)
  for (const [key, value] of Object.entries(reply)) {
    if (!FIELDS.includes(key)) throw misuse(`a reply to have only the fields \`${FIELDS.join('`, `')}\``, key)
    if (TEXTS.includes(key) && value !== undefined && typeof value !== 'string') {
      throw misuse(`\`${key}\` of a reply to be a text`, value)
    }
    if (LISTS.includes(key) && value !== undefined && !Array.isArray(value)) {
      throw misuse(`\`${key}\` of a reply to be a list`, value)
    }
  }
}

function misuse(expected: string, given: unknown): HarnessError {
  const came = typeof given === 'string' ? given : inspect(given, { depth: 1, breakLength: Infinity })
  return new HarnessError('invalid_options', `Expected ${expected}, got \`${came.slice(0, 200)}\`.`)
}
