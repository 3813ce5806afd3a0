import { HarnessError } from '../index.js'
import { unknownKey } from '../util/unknown-key.js'
import type { Identity } from './attributes.js'
import { contentOf } from './content.js'
import type { Content, ContentKinds, Redact } from './content.js'

/** What every kind of tracing can be told. */
export interface TraceOptions {
  /** Whether what is said, called and answered is in the trace: all of it, or by kind. */
  readonly captureContent?: boolean | ContentKinds
  /** Takes out what must not be in the trace, of content and of error messages. What throws leaves its text out. */
  readonly redact?: Redact
  /** Who the runs at the top are. Default `thinharness`. Child runs are `subagent.` and their name. */
  readonly agentName?: string
  readonly agentDescription?: string
  /** Default: the `conversation_id` in a run's metadata, if there is one. */
  readonly conversationId?: string
}

const COMMON = ['captureContent', 'redact', 'agentName', 'agentDescription', 'conversationId'] as const

/** Checks the options that all kinds of tracing share; `own` are the names of the others. */
export function checkTraceOptions(
  options: TraceOptions,
  { what, own, captured }: { readonly what: string; readonly own: readonly string[]; readonly captured: boolean },
): { readonly content: Content; readonly identity: Identity } {
  refuse(unknownKey(options, [...COMMON, ...own], `option of \`${what}\``))
  const { captureContent = captured, redact, agentName = 'thinharness', agentDescription, conversationId } = options
  if (typeof captureContent === 'object') {
    refuse(unknownKey(captureContent, ['messages', 'toolArguments', 'toolResults'], 'kind of `captureContent`'))
  } else if (typeof captureContent !== 'boolean') {
    refuse(`Expected \`captureContent\` of \`${what}\` to be true, false or an object, got ${typeof captureContent}.`)
  }
  if (redact !== undefined && typeof redact !== 'function') {
    refuse(`Expected \`redact\` of \`${what}\` to be a function, got ${typeof redact}.`)
  }
  return { content: contentOf(captureContent, redact), identity: { agentName, agentDescription, conversationId } }
}

export function refuse(problem: string | undefined): void {
  if (problem !== undefined) throw new HarnessError('invalid_options', problem)
}
