import type { ProjectionOptions } from '../projection.js'
import type { Dialect } from './chunk.js'

/** Options of AI SDK UI message streams. */
export interface UiStreamOptions extends ProjectionOptions {
  /** The version of the AI SDK on the page. Default 7. */
  readonly dialect?: Dialect | undefined
  /** In the metadata of the message. */
  readonly threadId?: string | undefined
  /** Arguments of calls as they arrive, or when the call starts. Default: `stream` for dialect 7, `whole` for 5 and 6. */
  readonly toolInputs?: 'stream' | 'whole' | undefined
  /** Tools that the page knows by name: their parts are `tool-<name>`, others are `dynamic-tool`. Default: none. */
  readonly staticTools?: readonly string[] | undefined
  /** Titles of tools by name. */
  readonly titles?: Readonly<Record<string, string>> | undefined
  /** Results as whole envelopes. Default false: their content. */
  readonly envelopes?: boolean | undefined
  /** The text of a structured answer as text too. Default false: as `data-output` alone. */
  readonly outputText?: boolean | undefined
  /**
   * Child runs as a data part with their status, or not at all. `message`: also the message of a child run, at most twice a second, as
   * preliminary output of the call that waits for it, until the call pauses or ends. Default `status`.
   */
  readonly children?: 'status' | 'message' | 'none' | undefined
}

/** True if arguments are sent when their call starts. */
export function hasWholeInputs({ dialect = 7, toolInputs }: UiStreamOptions): boolean {
  return (toolInputs ?? (dialect === 7 ? 'stream' : 'whole')) === 'whole'
}
