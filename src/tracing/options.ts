import { boolean, either, functionOf, partial, string } from '../util/shape.js'
import type { PartialFields } from '../util/shape.js'
import type { Identity } from './attributes.js'
import { contentOf } from './content.js'
import type { Content, ContentKinds, Redact } from './content.js'

/** Options of every kind of tracing. */
export interface TraceOptions {
  /** Whether the trace contains messages, tool arguments and tool results: all of them, or by kind. */
  readonly captureContent?: boolean | ContentKinds
  /** Removes secrets from content and error messages. If it throws, the text is left out. */
  readonly redact?: Redact
  /** Name of the agent of runs that no other run started. Default `thinharness`. A child run is named `subagent.<name>`. */
  readonly agentName?: string
  readonly agentDescription?: string
  /** Default: the `conversation_id` in a run's metadata, if there is one. */
  readonly conversationId?: string
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
