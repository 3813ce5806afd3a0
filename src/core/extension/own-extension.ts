import type { ContentPart, TranscriptEntry } from '#contracts/entry.js'
import type { DurablePayloads } from '../state/events.js'
import type { Labels } from '../state/labels.js'
import type { RunState } from '../state/state.js'
import type { Extension } from './extension.js'

/** An extension that comes with the package: it has seams that other extensions do not have. */
export interface OwnExtension extends Extension {
  readonly annotateCall?: AnnotateCall
  /** What `forRun` returned for the run itself: its children have none of it. */
  readonly instructions?: string | undefined
  readonly labels?: Labels | undefined
  /** `forRun` returned its `input`: nobody has asked it before the run. */
  readonly isInputOfRun?: boolean
  /** The extension of child runs; default: the same. `transcript` is that of the run that starts the child. */
  readonly forChild?: (transcript: readonly TranscriptEntry[]) => OwnExtension
}

/** Says more about a call that has ended, in its event. Pure. Child runs do not have it. */
export type AnnotateCall = (state: RunState, call: CallText, result: AnnotatedResult) => CallAnnotation

/** Members of `tool_call_completed`. */
export type CallAnnotation = Partial<DurablePayloads['tool_call_completed']>

/** A call; `arguments` is its JSON text. */
export interface CallText {
  readonly callId: string
  readonly name: string
  readonly arguments: string
}

/** The result of a call, as the model reads it. */
export interface AnnotatedResult {
  readonly output: string
  readonly parts: readonly ContentPart[] | undefined
  readonly ok: boolean
  /** The tool only reads, by its annotations. */
  readonly readOnly: boolean
}
