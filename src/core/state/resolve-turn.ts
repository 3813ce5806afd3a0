import { textOf } from '#contracts/entry.js'
import type { ModelToolCall, ModelTurn } from '../model-session.js'
import type { OutputContext } from '../tools/output-type.js'
import type { JsonValue } from '#util/json.js'
import { FINAL_RESULT } from './output-format.js'
import type { OutputFormat, ParsedOutput } from './output-format.js'

/** The meaning of a complete reply for the run. Plain JSON: it is part of the event of the reply. */
export type Resolution =
  | { readonly kind: 'continue' }
  | FinalAnswer
  | { readonly kind: 'retry_tool_output'; readonly callId: string; readonly message: string }
  | { readonly kind: 'retry_user_message'; readonly message: string }
  /** The reply is no end: the provider paused it, it was empty, or the run was aborted before its end. Ask again. */
  | { readonly kind: 'ask_again'; readonly reason: 'pause' | 'empty' | 'aborted' }
  | { readonly kind: 'unexpected'; readonly message: string }
  | BlockedReply

/** A filter has blocked the reply, or has failed. */
export interface BlockedReply {
  readonly kind: 'blocked'
  readonly code: 'guard_blocked' | 'hook_failed'
  readonly message: string
}

export interface FinalAnswer {
  readonly kind: 'final'
  /** The answer as JSON; absent if it is the text of the reply. */
  readonly output?: JsonValue
  /** The mode of structured output; null if no schema was requested. */
  readonly mode: string | null
  /** The `final_result` call that gave it. */
  readonly callId: string | null
}

export interface Resolved {
  readonly resolution: Resolution
  /** The answer as the caller's schema parsed it; of a final resolution only. */
  readonly value?: unknown
}

/** A reply, and its calls with the arguments as the model wrote them: the entry can have them repaired or shortened. */
export interface ReceivedTurn {
  readonly turn: ModelTurn
  readonly calls: readonly ModelToolCall[]
  /** No request can follow it: an answer counts, and the calls next to it do not run. Default false. */
  readonly isLast?: boolean
  /** Why the reply cannot be used. */
  readonly problem?: string
}

/**
 * The meaning of a reply, by its content, not by its finish reason. Knows no budgets. A reply that
 * was cut off, refused or filtered is never an answer.
 */
export async function resolveTurn(
  received: ReceivedTurn,
  output: OutputFormat | null,
  context: OutputContext,
): Promise<Resolved> {
  if (received.problem !== undefined) return { resolution: { kind: 'unexpected', message: received.problem } }
  if (received.calls.length > 0)
    return output?.mode === 'tool' ? resolveCalls(received, output, context) : { resolution: { kind: 'continue' } }
  const text = textOf(received.turn.entry.parts)
  const problem = unfinished(received.turn, text)
  if (problem !== undefined) return { resolution: problem }
  if (output === null) return { resolution: final(null), value: text }
  if (output.mode === 'tool') return { resolution: { kind: 'retry_user_message', message: correction(CALL_IT) } }
  const parsed = await output.parseText(text, context)
  if (!parsed.ok) {
    const message = correction(parsed.problem, output.mode === 'text' ? ANSWER_AGAIN : ONLY_JSON)
    return { resolution: { kind: 'retry_user_message', message } }
  }
  // The text of a reply is stored once; only a value that a schema parsed from it is stored as an answer of its own.
  const isText = output.mode === 'text' && parsed.value === text
  return { resolution: { ...final(output.mode), ...(!isText && { output: parsed.json }) }, value: parsed.value }
}

/** An answer next to other calls was given before their results were known: they run, and it is asked for again. */
async function resolveCalls(
  { turn, calls, isLast = false }: ReceivedTurn,
  output: OutputFormat,
  context: OutputContext,
): Promise<Resolved> {
  const [answer, another] = calls.filter((call) => call.name === FINAL_RESULT)
  const hasOthers = calls.some((call) => call.name !== FINAL_RESULT)
  if (answer === undefined || (hasOthers && !isLast)) return { resolution: { kind: 'continue' } }
  if (another !== undefined) {
    const message = `The model called \`${FINAL_RESULT}\` more than once in a reply.`
    return { resolution: { kind: 'unexpected', message } }
  }
  return resolveAnswer(turn, answer, await output.parseArguments(answer.arguments, context))
}

function resolveAnswer(turn: ModelTurn, call: ModelToolCall, parsed: ParsedOutput): Resolved {
  const cut = turn.entry.finishReason === 'length' ? 'The reply was cut off at the output limit.' : undefined
  if (parsed.ok && cut === undefined) {
    return { resolution: { ...final('tool'), output: parsed.json, callId: call.callId }, value: parsed.value }
  }
  const problem = cut ?? (parsed.ok ? '' : parsed.problem)
  return { resolution: { kind: 'retry_tool_output', callId: call.callId, message: correction(problem, CALL_AGAIN) } }
}

function unfinished({ entry, nativeFinishReason, refusal }: ModelTurn, text: string): Resolution | undefined {
  switch (entry.finishReason) {
    case 'pause':
      return { kind: 'ask_again', reason: 'pause' }
    case 'length':
      return unexpected('The reply was cut off at the output limit', nativeFinishReason)
    case 'refusal':
      return unexpected('The model refused to answer', nativeFinishReason, refusal)
    case 'content_filter':
      return unexpected("The provider's content filter stopped the reply", nativeFinishReason)
    case 'cancelled':
      return unexpected('The reply was cancelled', nativeFinishReason)
    case 'error':
      return unexpected('The provider ended the reply with an error', nativeFinishReason)
    case 'stop':
    case 'tool_calls':
    case 'other': {
      const isEmpty =
        text.trim() === '' && entry.parts.every((part) => part.type === 'reasoning' || part.type === 'text')
      return isEmpty ? { kind: 'ask_again', reason: 'empty' } : undefined
    }
  }
}

/** Longest quote of a reply in a message, in characters. */
const LONGEST_QUOTE = 500

function unexpected(what: string, nativeFinishReason: string | null = null, text = ''): Resolution {
  const word = nativeFinishReason === null ? '' : ` (\`${nativeFinishReason}\`)`
  const quote = text.length > LONGEST_QUOTE ? `${text.slice(0, LONGEST_QUOTE).replace(/[\uD800-\uDBFF]$/, '')}…` : text
  return { kind: 'unexpected', message: `${what}${word}${quote === '' ? '.' : `: ${quote}`}` }
}

function final(mode: string | null): FinalAnswer {
  return { kind: 'final', mode, callId: null }
}

const CALL_IT = `Call \`${FINAL_RESULT}\` with the final answer.`
const CALL_AGAIN = `Call \`${FINAL_RESULT}\` again with valid arguments.`
const ANSWER_AGAIN = 'Give the final answer again.'
const ONLY_JSON = 'Return only valid JSON for the schema, without any other text.'

/** Three parts, a blank line between them. */
function correction(problem: string, whatToDo?: string): string {
  const parts = ['Validation of the structured output failed.', problem]
  return (whatToDo === undefined ? parts : [...parts, whatToDo]).join('\n\n')
}
