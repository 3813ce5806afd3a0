import type { JsonValue } from '../index.js'
import { parseJson } from '../util/json.js'

/** Which content of a run a trace may contain. */
export interface ContentKinds {
  /** Instructions, prompts, replies, and what tools offer. */
  readonly messages?: boolean
  /** Arguments of tool calls. */
  readonly toolArguments?: boolean
  /** What tools answer, and why they fail. */
  readonly toolResults?: boolean
}

/**
 * Removes from a string everything that must not be in a trace, and returns the rest. `attribute` is its place. Asked
 * for each text of a message, and once for each call's arguments and result as JSON text.
 */
export type Redact = (text: string, attribute: string) => string

/** Content options, checked. */
export interface Content {
  readonly kinds: Required<ContentKinds>
  /** The redacted text. */
  redact(text: string, attribute: string): string
  /** JSON text as the value that it holds; text that is no JSON stays text. */
  redactJson(text: string, attribute: string): JsonValue
}

export function contentOf(captured: boolean | ContentKinds, redact: Redact | undefined): Content {
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
