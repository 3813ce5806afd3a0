import { runsIn } from '../projection.js'
import type { AnyRunEvent } from '../projection.js'
import { MessageFold } from './message-fold.js'
import type { UiMessage } from './message-fold.js'
import type { UiStreamOptions } from './options.js'
import { inputParts } from './parts.js'
import { messageProjection } from './ui-projection.js'

export interface UiMessagesOptions extends Omit<UiStreamOptions, 'after' | 'deltas'> {
  /**
   * The ids of the messages with which a run began. Default: `metadata.message_id` of the run, else `<run id>.prompt`.
   */
  readonly messageIds?: ((runId: string) => readonly string[]) | undefined
}

/**
 * The messages of a conversation, as `useChat` has them after reading all of its streams: of each run the prompt, and one message
 * of the assistant with everything since. `events`: those of one run, or of several in order, with those of their child runs.
 *
 * @example
 * const messages = toUIMessages(await Array.fromAsync(log.read({ kind: 'run', id: runId })))
 */
export function toUIMessages(events: Iterable<AnyRunEvent>, options: UiMessagesOptions = {}): readonly UiMessage[] {
  return runsIn(events).flatMap((run) => messagesOfRun(run, options))
}

function messagesOfRun(events: readonly AnyRunEvent[], options: UiMessagesOptions): readonly UiMessage[] {
  const projection = messageProjection(options)
  const fold = new MessageFold(options.dialect ?? 7)
  for (const event of events) for (const chunk of projection.next(event)) fold.add(chunk)
  for (const chunk of projection.end()) fold.add(chunk)
  const prompt = promptOf(events[0], options)
  return [prompt, fold.message].filter((message) => message !== null)
}

/** The message with which a run began; null for one that continues a stored state. */
function promptOf(first: AnyRunEvent | undefined, options: UiMessagesOptions): UiMessage | null {
  if (first?.kind !== 'run_started' || first.prompt === null) return null
  const { prompt, runId, seq, metadata } = first
  const given = options.messageIds?.(runId)[0] ?? metadata['message_id']
  const content = typeof prompt === 'string' ? [{ type: 'text' as const, text: prompt }] : prompt
  const id = typeof given === 'string' ? given : `${runId}.prompt`
  return { id, role: 'user', parts: inputParts(content, { runId, seq }, options) }
}
