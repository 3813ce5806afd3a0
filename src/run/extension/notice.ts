import type { ExtensionContext } from './context.js'

/** Something that the host says to the model with a request. */
export interface Notice {
  /** Its subject: letters, digits, `_` and `-`. A notice is repeated only if its text changes. */
  readonly name: string
  readonly text: string
}

/** The notices that hold now. Asked before each request; a failure is counted, and the request goes without them. */
export type NoticeSource<in Deps = unknown> = (
  state: ExtensionContext<Deps>,
) => readonly Notice[] | Promise<readonly Notice[]>
