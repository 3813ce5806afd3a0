import type { ModelRef, Prompt } from '../index.js'
import { jsonOf } from './actions.js'
import type { SentItem, SentStatus, WhenBusy } from './actions.js'
import { messageContent } from './content.js'
import type { ContentLimits } from './content.js'
import { SessionError } from './errors.js'
import type { MessageEnd } from './message-ends.js'
import type { Modes } from './options.js'
import { newId } from './play-run.js'

export interface SendOptions<Mode extends string = string> {
  /** The mode of this message alone. Default: the thread's. */
  readonly mode?: Mode | undefined
  /** The model of this message alone. Default: the thread's choice for the mode, else that of the mode's harness. */
  readonly model?: ModelRef | undefined
  /** If a run is in progress or waits. Default `queue`. */
  readonly whenBusy?: WhenBusy | undefined
  /** A message with an id that the thread has is not delivered again. Default: a new id. */
  readonly messageId?: string | undefined
  /** Becomes the metadata of its run. */
  readonly metadata?: object | undefined
  /** The author. */
  readonly by?: string | undefined
  /** Removes the message from the queue, or cancels its run. */
  readonly signal?: AbortSignal | undefined
}

/** A message that is stored. */
export interface Sent<Output = unknown> {
  readonly messageId: string
  /** `posted`: the thread's owner, another process, has not taken it yet. */
  readonly status: SentStatus | 'posted'
  /** Resolves when the run that reads the message pauses or ends. Never rejects. */
  readonly done: Promise<MessageEnd<Output>>
}

/** A message as it is stored. Throws a `SessionError` for one that is refused. */
export function sentItem(
  prompt: Prompt,
  { mode, model, messageId, metadata, by }: SendOptions,
  { modes, limits }: { readonly modes: Modes; readonly limits: ContentLimits },
): SentItem {
  if (mode !== undefined) checkMode(modes, mode)
  return {
    messageId: messageId ?? newId('msg'),
    content: messageContent(prompt, limits),
    by: by ?? null,
    mode: mode ?? null,
    model: model ?? null,
    metadata: metadata === undefined ? {} : jsonOf(metadata),
  }
}

/** Throws a `SessionError` for a mode that the sessions do not have. */
export function checkMode(modes: Modes, mode: string): void {
  if (mode in modes) return
  const names = Object.keys(modes).map((name) => `\`${name}\``)
  throw new SessionError('unknown_mode', `There is no mode \`${mode}\`; there are ${names.join(', ')}.`)
}
