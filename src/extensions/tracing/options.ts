import type { JsonValue } from '#util/json.js'
import { jsonOr, parseJson } from '#util/json.js'
import { boolean, either, functionAtOnce, partial, string } from '#util/validate.js'
import type { Complete, PartialFields } from '#util/validate.js'

/** Which content of a run a trace may contain. */
export interface ContentKinds {
  /** Instructions, prompts, replies, and tool definitions. */
  readonly messages?: boolean | undefined
  /** Arguments of tool calls. */
  readonly toolArguments?: boolean | undefined
  /** Results and errors of tools. */
  readonly toolResults?: boolean | undefined
}

/**
 * Removes from a string everything that must not be in a trace, and returns the rest. `attribute` is its place. Asked
 * for each text of a message, and once for each call's arguments and result as JSON text.
 */
export type RedactText = (text: string, attribute: string) => string

/** Options of every kind of tracing. */
export interface TraceOptions {
  /** Messages, tool arguments and tool results in the trace: all of them (`true`), none, or by kind. */
  readonly captureContent?: boolean | ContentKinds | undefined
  /** Removes secrets from content and error messages. If it throws, the text is left out. */
  readonly redact?: RedactText | undefined
  /** Name of the agent of runs that no other run started. Default `thinharness`. A child run is named `subagent.<name>`. */
  readonly agentName?: string | undefined
  readonly agentDescription?: string | undefined
  /** Default: the `conversation_id` in a run's metadata, if there is one. */
  readonly conversationId?: string | undefined
}

/** The options of every kind of tracing. */
export const TRACE_OPTIONS: PartialFields<TraceOptions> = {
  captureContent: either(
    boolean,
    partial<ContentKinds>({ messages: boolean, toolArguments: boolean, toolResults: boolean }),
  ),
  redact: functionAtOnce('redact'),
  agentName: string,
  agentDescription: string,
  conversationId: string,
}

/** Parsed options with their defaults; `captured` is that of `captureContent`. */
export function traceSettings(
  { captureContent, redact, agentName = 'thinharness', agentDescription, conversationId }: TraceOptions,
  captured: boolean,
): { readonly content: CapturedContent; readonly identity: Identity } {
  return {
    content: capturedContent(captureContent ?? captured, redact),
    identity: { agentName, agentDescription, conversationId },
  }
}

/** How the runs of a harness are named in its traces. */
export interface Identity {
  readonly agentName: string
  readonly agentDescription: string | undefined
  readonly conversationId: string | undefined
}

/** Content options, checked. */
export interface CapturedContent {
  readonly kinds: Complete<ContentKinds>
  /** The redacted text. */
  redact(text: string, attribute: string): string
  /** JSON text as the value that it holds; text that is not JSON stays text. */
  redactJson(text: string, attribute: string): JsonValue
}

function capturedContent(captured: boolean | ContentKinds, redact: RedactText | undefined): CapturedContent {
  const all = captured === true
  const kinds = typeof captured === 'boolean' ? { messages: all, toolArguments: all, toolResults: all } : captured
  const redactSafely = (text: string, attribute: string): string => redactText(redact, text, attribute)
  return {
    kinds: {
      messages: kinds.messages ?? false,
      toolArguments: kinds.toolArguments ?? false,
      toolResults: kinds.toolResults ?? false,
    },
    redact: redactSafely,
    redactJson: (text, attribute) => {
      if (redact === undefined) return jsonOr(text, text)
      // Serialized again: an escape such as `\u0041` must not hide a word from `redact`.
      const value = parseJson(text)
      const redacted = redactSafely(value.ok ? JSON.stringify(value.value) : text, attribute)
      return jsonOr(redacted, redacted)
    },
  }
}

/** Replaces a text that could not be redacted. */
const NOT_REDACTED = '[left out: redaction failed]'

function redactText(redact: RedactText | undefined, text: string, attribute: string): string {
  if (redact === undefined) return text
  try {
    const result: unknown = redact(text, attribute)
    return typeof result === 'string' ? result : NOT_REDACTED
  } catch {
    return NOT_REDACTED
  }
}
