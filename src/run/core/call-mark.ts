import type { ContentPart } from '../../contracts/entry.js'
import type { DurablePayloads } from '../machine/events.js'
import type { RunState } from '../machine/state.js'

/** The result of a call, as the model reads it. */
export interface MarkedResult {
  readonly output: string
  readonly parts: readonly ContentPart[] | undefined
  readonly ok: boolean
  /** The tool only reads, by its annotations. */
  readonly readOnly: boolean
}

/** Says more about a call that has ended: members of its `tool_call_completed`. Pure. */
export type CallMark = (
  state: RunState,
  call: { readonly name: string; readonly arguments: string },
  result: MarkedResult,
) => Partial<DurablePayloads['tool_call_completed']>
