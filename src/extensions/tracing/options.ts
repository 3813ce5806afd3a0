import type { JsonValue } from '#util/json.js'
import { parseJson } from '#util/json.js'
import { boolean, either, functionOf, partial, string } from '#util/shape.js'
import type { Complete, PartialFields } from '#util/shape.js'

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
export type Redact = (text: string, attribute: string) => string

/** Options of every kind of tracing. */
export interface TraceOptions {
  /** Messages, tool arguments and tool results in the trace: all of them (`true`), none, or by kind. */
  readonly captureContent?: boolean | ContentKinds | undefined
  /** Removes secrets from content and error messages. If it throws, the text is left out. */
  readonly redact?: Redact | undefined
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
  redact: functionOf(),
  agentName: string,
  agentDescription: string,
  conversationId: string,
}

/** Parsed options with their defaults; `captured` is that of `captureContent`. */
export function traceSettings(
  { captureContent, redact, agentName = 'thinharness', agentDescription, conversationId }: TraceOptions,
  captured: boolean,
): { readonly content: Content; readonly identity: Identity } {
  return {
    content: contentOf(captureContent ?? captured, redact),
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
export interface Content {
  readonly kinds: Complete<ContentKinds>
  /** The redacted text. */
  redact(text: string, attribute: string): string
  /** JSON text as the value that it holds; text that is not JSON stays text. */
  redactJson(text: string, attribute: string): JsonValue
}

function contentOf(captured: boolean | ContentKinds, redact: Redact | undefined): Content {
  const all = captured === true
  const kinds = typeof captured === 'boolean' ? { messages: all, toolArguments: all, toolResults: all } : captured
  const safely = (text: string, attribute: string): string => redacted(redact, text, attribute)
  return {
    kinds: {
      messages: kinds.messages ?? false,
      toolArguments: kinds.toolArguments ?? false,
      toolResults: kinds.toolResults ?? false,
    },
    redact: safely,
    redactJson: (text, attribute) => {
      if (redact === undefined) return valueIn(text)
      // Serialized again: an escape such as `\u0041` must not hide a word from `redact`.
      const value = parseJson(text)
      return valueIn(safely(value.ok ? JSON.stringify(value.value) : text, attribute))
    },
  }
}

/** Replaces a text that could not be redacted. */
const NOT_REDACTED = '[left out: redaction failed]'

function redacted(redact: Redact | undefined, text: string, attribute: string): string {
  if (redact === undefined) return text
  try {
    const result: unknown = redact(text, attribute)
    return typeof result === 'string' ? result : NOT_REDACTED
  } catch {
    return NOT_REDACTED
  }
}

function valueIn(text: string): JsonValue {
  const parsed = parseJson(text)
  return parsed.ok ? parsed.value : text
}
